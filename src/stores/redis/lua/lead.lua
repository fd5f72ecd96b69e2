-- Makes the candidate the leader for a term, or extends its term, unless another one leads. With 0 ms it steps down.
-- ARGV: candidate, ms.
-- Answers: 1 if it leads now.
write_though_full()
local text = redis.call('GET', B .. 'leader')
if text then
  local until_ms, leader = string.match(text, '^(%d+) (.*)$')
  if leader ~= ARGV[1] and tonumber(until_ms) > now then return 0 end
end
if tonumber(ARGV[2]) <= 0 then
  redis.call('DEL', B .. 'leader')
  return 0
end
redis.call('SET', B .. 'leader', int(now + tonumber(ARGV[2])) .. ' ' .. ARGV[1])
return 1
