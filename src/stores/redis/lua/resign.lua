-- Ends the leadership of a candidate, if it leads.
-- ARGV: candidate.
local text = redis.call('GET', B .. 'leader')
if text and string.match(text, ' (.*)$') == ARGV[1] then redis.call('DEL', B .. 'leader') end
return 1
