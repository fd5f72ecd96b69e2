-- When the jobs of a final state finished that finished first. Writes nothing.
-- ARGV: completed, dead or cancelled; how many of them at most.
-- Answers: how many jobs there are, then the times in order.
local answer = { redis.call('ZCARD', B .. ARGV[1]) }
local found = redis.call('ZRANGE', B .. ARGV[1], 0, tonumber(ARGV[2]) - 1, 'WITHSCORES')
for index = 2, #found, 2 do answer[#answer + 1] = tonumber(found[index]) end
return answer
