-- Makes a worker known, or renews it; what it holds stays as it is.
-- ARGV: worker, lease in ms.
write_though_full()
redis.call('HSET', WORKERS, ARGV[1], ARGV[2])
redis.call('ZADD', EXPIRY, now + tonumber(ARGV[2]), ARGV[1])
return 1
