-- Uses: jobs.
-- Every queue that is paused or has ever had a job, with exact counts at one moment.
-- Answers: for each queue its name, 1 if paused, ready, scheduled, running, completed, dead, cancelled, and when its
--       oldest ready job became due (empty: none).
local STEP = 1000

-- Jobs stand by rank, which is due time minus head start: none behind can be older than the best so far, once the rank
-- and the smallest head start of the queue are beyond it.
local function oldest_in(key, smallest, best)
  local from = 0
  while true do
    local found = redis.call('ZRANGE', key, from, from + STEP - 1, 'WITHSCORES')
    if #found == 0 then return best end
    for index = 1, #found, 2 do
      local rank = tonumber(found[index + 1])
      if best and rank + smallest >= best then return best end
      local due = rank + head_start_of(redis.call('HGET', JOBS, found[index]))
      best = math.min(best or due, due)
    end
    from = from + STEP
  end
end

local names, smallest = {}, {}
local known = redis.call('HGETALL', QUEUES)
for index = 1, #known, 2 do
  names[#names + 1] = known[index]
  smallest[known[index]] = tonumber(known[index + 1])
end
local paused = {}
for _, queue in ipairs(redis.call('SMEMBERS', PAUSED)) do
  paused[queue] = true
  if not smallest[queue] then names[#names + 1] = queue end
end

local answers = {}
for index, queue in ipairs(names) do
  local ready, suspects = B .. 'ready:' .. queue, B .. 'suspects:' .. queue
  local counts = redis.call('HMGET', COUNTS, 'running:' .. queue, 'completed:' .. queue, 'dead:' .. queue, 'cancelled:' .. queue)
  local oldest = oldest_in(suspects, smallest[queue] or 0, oldest_in(ready, smallest[queue] or 0, nil))
  answers[index] = { queue, paused[queue] and 1 or 0,
    redis.call('ZCARD', ready) + redis.call('ZCARD', suspects), redis.call('ZCARD', B .. 'delay:' .. queue),
    tonumber(counts[1] or 0), tonumber(counts[2] or 0), tonumber(counts[3] or 0), tonumber(counts[4] or 0),
    oldest and int(oldest) or '' }
end
return answers
