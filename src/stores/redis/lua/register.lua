-- Registers a worker, or renews it; it keeps its leases.
-- ARGV: worker, lease in ms, how much of that is left (empty: all), how many of its jobs can run at once (empty: all).
write_though_full()
local left = tonumber(ARGV[3]) or tonumber(ARGV[2])
redis.call('HSET', WORKERS, ARGV[1], ARGV[2])
redis.call('ZADD', EXPIRY, int(now + left), ARGV[1])
if ARGV[4] == '' then redis.call('HDEL', AT_ONCE, ARGV[1])
else redis.call('HSET', AT_ONCE, ARGV[1], ARGV[4]) end
return 1
