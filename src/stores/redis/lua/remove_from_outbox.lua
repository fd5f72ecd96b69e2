-- Removes delivered jobs from the outbox.
-- ARGV: ids.
return redis.call('HDEL', B .. 'outbox', unpack(ARGV))
