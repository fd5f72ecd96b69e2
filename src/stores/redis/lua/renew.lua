-- Renews the lease of a worker that is registered, and tells nothing but whether it is: for the thread that does so
-- while the event loop of its process is blocked. All else is the heartbeat's.
-- ARGV: worker.
-- Answers: whether it is alive.
write_though_full()
local lease_ms = redis.call('HGET', WORKERS, ARGV[1])
if not lease_ms then return 0 end
redis.call('ZADD', EXPIRY, now + tonumber(lease_ms), ARGV[1])
return 1
