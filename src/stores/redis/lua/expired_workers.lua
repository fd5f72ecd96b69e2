-- Uses: jobs, leases.
-- Which workers can be forgotten in this shard, and which can't. Writes nothing.
-- Answers: the workers that are expired and hold nothing, and all others.
local expired, others = {}, {}
local workers = redis.call('ZRANGE', EXPIRY, 0, -1, 'WITHSCORES')
for index = 1, #workers, 2 do
  local is_over = tonumber(workers[index + 1]) <= now and #tokens_of(workers[index]) == 0
  local list = is_over and expired or others
  list[#list + 1] = workers[index]
end
return { expired, others }
