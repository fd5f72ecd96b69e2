-- Uses: jobs, leases.
-- Runs first on every new connection: records that another Redis process or primary serves this shard now. It may lack
-- the last writes of its predecessor (a replica that took over after a crash, a file whose end was lost). No token
-- between the last one known here and now was handed out here, or ever will be: a settle with such a token is answered
-- lost. Without this record it would be answered already, as soon as a later token is handed out. Not covered: a
-- primary that keeps running beside the new one, or whose clock was ahead by more than the change took, and a proxy
-- that keeps its clients' connections meanwhile. If INFO is forbidden, nothing is recorded.
-- Answers: 1 if it is another process or primary.
local function fact(section, name)
  local info = redis.pcall('INFO', section)
  return type(info) == 'string' and string.match(info, name .. ':(%w+)')
end

-- The first changes with each process, the second when a replica becomes a primary.
local process, history = fact('server', 'run_id'), fact('replication', 'master_replid')
if not process or not history then return 0 end
local server = process .. ' ' .. history
if redis.call('GET', B .. 'server') == server then return 0 end

write_though_full()
local token_time = math.floor(now_us / TOKEN_UNIT_US)
local gaps = redis.call('HGETALL', GAPS)
for index = 1, #gaps, 2 do
  -- Tokens older than a day count as lost anyway.
  if tonumber(gaps[index + 1]) < token_time - DAY_MS * 1000 / TOKEN_UNIT_US then redis.call('HDEL', GAPS, gaps[index]) end
end
local last = tonumber(redis.call('GET', B .. 'token') or '0')
if token_time > last then
  redis.call('HSET', GAPS, int(last), int(token_time))
  redis.call('SET', B .. 'token', int(token_time))
end
redis.call('SET', B .. 'server', server)
return 1
