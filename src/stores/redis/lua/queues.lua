-- Uses: jobs, waiting.
-- Lists every queue that is paused or ever had a job, with exact counts at one moment. Reads no records: counts are sizes and
-- counters, and the oldest ready job of a lane is its first.
-- Answers: for each queue its name, 1 if paused, ready, scheduled, running, completed, dead, cancelled, and when its
--       oldest ready job became due (empty: none).
local function ready_of(queue)
  local size, oldest = 0, nil
  for _, lane in ipairs(lanes_of(queue)) do
    for _, set in ipairs({ 'ready:', 'suspects:' }) do
      local key = key_of(set, lane, queue)
      local rank = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2]
      if rank then
        size = size + redis.call('ZCARD', key)
        local due = tonumber(rank) + tonumber(lane)
        oldest = math.min(oldest or due, due)
      end
    end
  end
  return size, oldest
end

local names, paused = redis.call('HKEYS', QUEUES), {}
for _, queue in ipairs(redis.call('SMEMBERS', PAUSED)) do
  paused[queue] = true
  if redis.call('HEXISTS', QUEUES, queue) == 0 then names[#names + 1] = queue end
end

local answers = {}
for index, queue in ipairs(names) do
  local counts = redis.call('HMGET', COUNTS, 'running:' .. queue, 'completed:' .. queue, 'dead:' .. queue, 'cancelled:' .. queue)
  local ready, oldest = ready_of(queue)
  answers[index] = { queue, paused[queue] and 1 or 0, ready, redis.call('ZCARD', B .. 'delay:' .. queue),
    tonumber(counts[1] or 0), tonumber(counts[2] or 0), tonumber(counts[3] or 0), tonumber(counts[4] or 0),
    oldest and int(oldest) or '' }
end
return answers
