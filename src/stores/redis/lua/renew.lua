-- Renews a registered worker, for the thread that does this while the event loop of its process is blocked.
-- ARGV: worker.
-- Answers: 1 if the worker is registered.
write_though_full()
local lease_ms = redis.call('HGET', WORKERS, ARGV[1])
if not lease_ms then return 0 end
redis.call('ZADD', EXPIRY, now + tonumber(lease_ms), ARGV[1])
return 1
