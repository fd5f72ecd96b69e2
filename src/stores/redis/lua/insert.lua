-- New jobs, as functions. `due` is when a job is due: '' now, '+ms' after a delay, '@ms' at a time (now, if that has passed).
local function is_due(due)
  if due == '' then return true end
  local ms = tonumber(string.sub(due, 2))
  -- NaN is not equal to itself.
  return ms ~= nil and ms == ms and string.find(due, '^[+@]') ~= nil
end

local function due_at(due)
  if due == '' then return now end
  local ms = tonumber(string.sub(due, 2))
  return string.sub(due, 1, 1) == '+' and now + ms or math.max(ms, now)
end

-- A sender sends one flush at a time, with a growing number. Returns the answer of its last flush if this is a repeat of it.
local function remembered(sender, seq)
  local text = redis.call('HGET', SENDERS, sender)
  if not text then return nil end
  local last, answers = string.match(text, '^(%d+) %d+ (.*)$')
  if tonumber(last) < seq then return nil end
  if tonumber(last) == seq then return answers end
  return redis.error_reply('HFSTALE the sender has sent a later flush')
end

local function remember_flush(sender, seq, answers)
  redis.call('HSET', SENDERS, sender, int(seq) .. ' ' .. int(now) .. ' ' .. answers)
end

-- Returns an error if an id already exists, or occurs twice in the flush. Called before the first write.
local function refuse_known(ids)
  for index, record in ipairs(read_many(JOBS, ids)) do
    if record then return redis.error_reply('HFKNOWN ' .. ids[index]) end
  end
  if is_ascending(ids) then return nil end
  local seen = {}
  for _, id in ipairs(ids) do
    if seen[id] then return redis.error_reply('HFKNOWN ' .. id) end
    seen[id] = true
  end
  return nil
end

local function holder_of(key)
  local text = redis.call('HGET', UNIQUE, key)
  if not text then return nil end
  local until_ms = string.match(text, ' (%d+)$')
  if until_ms and tonumber(until_ms) <= now then return nil end
  return string.sub(text, 1, ID_CHARS)
end

-- `hold` is r (while ready), u (while unfinished) or the time in ms.
local function take_key(key, hold, id)
  local ms = tonumber(hold)
  redis.call('HSET', UNIQUE, key, ms and id .. ' ' .. int(now + ms) or id)
  if ms then redis.call('HDEL', KEYED, id)
  else redis.call('HSET', KEYED, id, hold .. key) end
end

local function insert(job)
  know(job.queue, job.head_start)
  local record = '[' .. int(now) .. ',' .. int(job.head_start) .. ',' .. job.tail
  check(redis.call('HSET', JOBS, job.id, record) == 1, job.id, 'is there already')
  add_to_index({ job.id })
  place(job.id, job.queue, due_at(job.due), job.head_start, false)
  return job.id .. 'i'
end

-- Changes the waiting job that holds the unique key. A reschedule changes only when it is due. A replace keeps only its
-- id and when it was created; the rest comes from the new job, without attempts.
local function change_holder(job, id, record, queue, wait)
  leave(id, wait)
  if job.on_conflict == 'reschedule' then
    place(id, queue, due_at(job.due), head_start_of(record), is_suspect(id))
    return id .. 's'
  end
  if is_used(PAST) then redis.call('HDEL', PAST, id) end
  if is_used(ATTEMPTS) then redis.call('HDEL', ATTEMPTS, id) end
  know(job.queue, job.head_start)
  take_key(job.key, job.hold, id)
  local created = string.match(record, '^%[(%d+)')
  write_record(id, '[' .. created .. ',' .. int(job.head_start) .. ',' .. job.tail)
  place(id, job.queue, due_at(job.due), job.head_start, false)
  return id .. 'r'
end

-- Returns the id of the resulting job, and a letter: i inserted, d duplicate, r replaced, s rescheduled.
local function insert_keyed(job)
  if job.key == '' then return insert(job) end
  local holder = holder_of(job.key)
  if not holder then
    take_key(job.key, job.hold, job.id)
    return insert(job)
  end
  local record = job.on_conflict ~= 'ignore' and redis.call('HGET', JOBS, holder)
  if not record then return holder .. 'd' end
  local queue = head_of(record)[3]
  local wait = wait_of(holder, queue, head_start_of(record))
  if not wait then return holder .. 'd' end
  return change_holder(job, holder, record, queue, wait)
end

-- Returns what is wrong with a job, or nil.
local CONFLICTS = { ignore = true, replace = true, reschedule = true }
local function fault_of(job)
  if not (job.on_conflict and job.head_start and is_due(job.due)) then return 'a job with a part missing' end
  if job.key == '' then return nil end
  if not CONFLICTS[job.on_conflict] then return 'a unique key with an unknown conflict rule' end
  if job.hold ~= 'r' and job.hold ~= 'u' and not tonumber(job.hold) then return 'a unique key with an unknown hold' end
  return nil
end

-- A job from eight entries of ARGV, starting at `at`.
local function job_at(at)
  return { id = ARGV[at], queue = ARGV[at + 1], head_start = tonumber(ARGV[at + 2]), due = ARGV[at + 3],
    tail = ARGV[at + 4], key = ARGV[at + 5], hold = ARGV[at + 6], on_conflict = ARGV[at + 7] }
end
