-- Registers a worker, or renews it; then it keeps its leases and how many of its jobs can run at once.
-- ARGV: worker, lease in ms, how much of that is left (empty: all), how many of its jobs can run at once (empty: all).
write_though_full()
local left = tonumber(ARGV[3]) or tonumber(ARGV[2])
local is_new = redis.call('HSET', WORKERS, ARGV[1], ARGV[2]) == 1
redis.call('ZADD', EXPIRY, int(now + left), ARGV[1])
if is_new and ARGV[4] ~= '' then redis.call('HSET', AT_ONCE, ARGV[1], ARGV[4]) end
return 1
