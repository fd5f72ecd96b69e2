-- Where jobs wait, as functions. Every job becomes ready through into_ready and scheduled through into_scheduled.
--   ready:<lane>:<queue>     rank -> id
--   suspects:<lane>:<queue>  the same for ready jobs that lost a worker: they are claimed alone
--   delay:<queue>            due time -> id
--   queues                   queue -> its lanes, each between two spaces; every queue that ever had a job is there
-- A lane is the ready jobs of a queue with the same head start, and is named after that. Within a lane, the order of
-- rank is the order of due time, so the oldest ready job of a queue is the first job of one of its lanes. A queue has
-- one lane for each priority in use, mostly one.
local function key_of(set, lane, queue)
  return B .. set .. lane .. ':' .. queue
end

local function lanes_of(queue)
  local lanes = {}
  for lane in string.gmatch(redis.call('HGET', QUEUES, queue) or '', '%S+') do lanes[#lanes + 1] = lane end
  return lanes
end

-- Remembers a queue and one of its lanes.
local function know(queue, head_start)
  local lanes, lane = redis.call('HGET', QUEUES, queue) or ' ', int(head_start) .. ' '
  if not string.find(lanes, ' ' .. lane, 1, true) then redis.call('HSET', QUEUES, queue, lanes .. lane) end
end

-- Tells workers of a lane that was empty. An enqueue replaces this, see hand_over.lua.
local function announce(queue)
  hint('r ' .. queue)
end

-- The one way into ready. `scored` is rank, id, rank, id … of jobs of one queue with the same head start.
local function into_ready(queue, head_start, suspect, scored)
  know(queue, head_start)
  local key = key_of(suspect and 'suspects:' or 'ready:', int(head_start), queue)
  local was_empty = redis.call('EXISTS', key) == 0
  check(write_many('ZADD', key, scored) == #scored / 2, 'a job is in', key, 'twice')
  if was_empty then announce(queue, #scored / 2) end
end

-- The one way into scheduled.
local function into_scheduled(id, queue, due)
  local key = B .. 'delay:' .. queue
  check(redis.call('ZADD', key, due, id) == 1, id, 'is in', key, 'twice')
  -- Workers only need to know about the job that is due first.
  if redis.call('ZRANGE', key, 0, 0)[1] == id then hint('d ' .. int(due - now)) end
end

-- Makes a job ready or scheduled, by when it is due.
local function place(id, queue, due, head_start, suspect)
  if due > now then into_scheduled(id, queue, due)
  else into_ready(queue, head_start, suspect, { int(due - head_start), id }) end
end

-- For a waiting job: r (ready) or s (scheduled), the key of its set, and its due time; nil for any other job.
local function wait_of(id, queue, head_start)
  local lane = int(head_start)
  for _, set in ipairs({ 'ready:', 'suspects:' }) do
    local key = key_of(set, lane, queue)
    local rank = redis.call('ZSCORE', key, id)
    if rank then return { state = 'r', key = key, due = tonumber(rank) + head_start } end
  end
  local due = redis.call('ZSCORE', B .. 'delay:' .. queue, id)
  return due and { state = 's', key = B .. 'delay:' .. queue, due = tonumber(due) }
end

-- Takes a waiting job out of its set.
local function leave(id, wait)
  check(redis.call('ZREM', wait.key, id) == 1, id, 'is not in', wait.key)
end
