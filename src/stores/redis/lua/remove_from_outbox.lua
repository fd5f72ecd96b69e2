-- Takes out of the outbox what was delivered.
-- ARGV: ids.
return redis.call('HDEL', B .. 'outbox', unpack(ARGV))
