-- Uses: jobs, leases.
-- Notes that another process or primary goes on with this shard: it may lack the last of what the one before had answered
-- (a replica that took over after a crash, a file whose end was lost). Between the last token that is known here and now
-- none was handed out, nor will be: whoever settles one of those is told that it is lost. Without this it would be taken
-- for one that was settled long ago as soon as a later token is handed out.
-- Not covered: a primary that goes on beside the new one, or whose clock was ahead by more than the change took, and a
-- proxy that keeps its clients' connections meanwhile. Where INFO is forbidden, nothing is noted.
-- Answers: 1 if it is another one.
local function fact(section, name)
  local info = redis.pcall('INFO', section)
  return type(info) == 'string' and string.match(info, name .. ':(%w+)')
end

-- The first changes with each process, the second when a replica becomes a primary.
local process, history = fact('server', 'run_id'), fact('replication', 'master_replid')
if not process or not history then return 0 end
local reign = process .. ' ' .. history
if redis.call('GET', B .. 'reign') == reign then return 0 end

write_though_full()
local tick = math.floor(now_us / TICK_US)
local gaps = redis.call('HGETALL', GAPS)
for index = 1, #gaps, 2 do
  -- What is older than a day counts as lost anyway.
  if tonumber(gaps[index + 1]) < tick - DAY_MS * 1000 / TICK_US then redis.call('HDEL', GAPS, gaps[index]) end
end
local last = tonumber(redis.call('GET', B .. 'token') or '0')
if tick > last then
  redis.call('HSET', GAPS, int(last), int(tick))
  redis.call('SET', B .. 'token', int(tick))
end
redis.call('SET', B .. 'reign', reign)
return 1
