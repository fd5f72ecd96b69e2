-- Which jobs this shard has.
-- ARGV: ids.
-- Answers: 1 or 0 for each.
local present = {}
for index, id in ipairs(ARGV) do present[index] = redis.call('HEXISTS', JOBS, id) end
return present
