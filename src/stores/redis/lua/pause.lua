-- Pauses (1) or resumes (0) a queue; no claim takes from a paused one.
-- ARGV: queue, 1 or 0.
if ARGV[2] ~= '1' and ARGV[2] ~= '0' then return refused('a pause that is neither 1 nor 0') end
write_though_full()
if ARGV[2] == '1' then
  redis.call('SADD', PAUSED, ARGV[1])
  hint('p ' .. ARGV[1])
else
  redis.call('SREM', PAUSED, ARGV[1])
  hint('r ' .. ARGV[1])
end
return 1
