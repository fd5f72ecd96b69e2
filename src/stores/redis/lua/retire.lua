-- Uses: jobs, leases.
-- Removes a worker. Jobs that it still holds can be rescued at once.
-- ARGV: worker.
write_though_full()
redis.call('HDEL', WORKERS, ARGV[1])
redis.call('HDEL', AT_ONCE, ARGV[1])
redis.call('HDEL', BEATS, ARGV[1])
redis.call('HDEL', B .. 'offers', ARGV[1])
redis.call('HDEL', B .. 'handed', ARGV[1])
if #tokens_of(ARGV[1]) > 0 then redis.call('ZADD', EXPIRY, 0, ARGV[1])
else redis.call('ZREM', EXPIRY, ARGV[1]) end
return 1
