-- Makes a worker known, or renews it; what it holds stays as it is.
-- ARGV: worker, lease in ms, what is left of it (empty: all).
write_though_full()
local left = tonumber(ARGV[3]) or tonumber(ARGV[2])
redis.call('HSET', WORKERS, ARGV[1], ARGV[2])
redis.call('ZADD', EXPIRY, int(now + left), ARGV[1])
return 1
