-- Reads when the oldest jobs in a final state finished. Writes nothing.
-- ARGV: completed, dead or cancelled; maximum number of times to read.
-- Answers: how many jobs are in that state, then the times, the oldest first.
local answer = { redis.call('ZCARD', B .. ARGV[1]) }
local found = redis.call('ZRANGE', B .. ARGV[1], 0, tonumber(ARGV[2]) - 1, 'WITHSCORES')
for index = 2, #found, 2 do answer[#answer + 1] = tonumber(found[index]) end
return answer
