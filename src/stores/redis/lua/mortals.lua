-- Uses: jobs, leases.
-- Which workers could be forgotten here, and which could not. Writes nothing.
-- Answers: those that are expired and hold nothing, and all others that are known.
local mortal, others = {}, {}
local workers = redis.call('ZRANGE', EXPIRY, 0, -1, 'WITHSCORES')
for index = 1, #workers, 2 do
  local is_over = tonumber(workers[index + 1]) <= now and #tokens_of(workers[index]) == 0
  local list = is_over and mortal or others
  list[#list + 1] = workers[index]
end
return { mortal, others }
