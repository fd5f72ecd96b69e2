-- Uses: jobs, leases.
-- Tells which workers can be removed from this shard. Writes nothing.
-- Answers: the workers that are expired and hold no lease, and all other workers.
local expired, others = {}, {}
local workers = redis.call('ZRANGE', EXPIRY, 0, -1, 'WITHSCORES')
for index = 1, #workers, 2 do
  local is_over = tonumber(workers[index + 1]) <= now and #tokens_of(workers[index]) == 0
  local list = is_over and expired or others
  list[#list + 1] = workers[index]
end
return { expired, others }
