-- Uses: jobs, waiting.
-- Moves due jobs to where they can be claimed, the earliest first, no more than the limit.
-- ARGV: limit.
-- Answers: how many, and when the next one is due (in ms from now; empty: none).
write_though_full()
local limit = tonumber(ARGV[1])
local queues, due = redis.call('HKEYS', QUEUES), {}
for _, queue in ipairs(queues) do
  local found = redis.call('ZRANGEBYSCORE', B .. 'delay:' .. queue, '-inf', now, 'WITHSCORES', 'LIMIT', 0, limit)
  for index = 1, #found, 2 do due[#due + 1] = { found[index], tonumber(found[index + 1]), queue } end
end
table.sort(due, function(a, b) return a[2] < b[2] or (a[2] == b[2] and a[1] < b[1]) end)

local promoted = math.min(limit, #due)
for index = 1, promoted do
  local id, at, queue = unpack(due[index])
  leave(id, { key = B .. 'delay:' .. queue })
  local head_start = head_start_of(redis.call('HGET', JOBS, id))
  into_ready(queue, head_start, is_suspect(id), { int(at - head_start), id })
end

local next_at
for _, queue in ipairs(queues) do
  local first = redis.call('ZRANGE', B .. 'delay:' .. queue, 0, 0, 'WITHSCORES')[2]
  if first then next_at = math.min(next_at or math.huge, tonumber(first)) end
end
return { promoted, next_at and int(math.max(0, next_at - now)) or '' }
