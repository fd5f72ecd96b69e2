-- Remembers that queues have a shard, on a cluster. Shards are never removed.
-- ARGV: queues.
return redis.call('SADD', B .. 'shards', unpack(ARGV))
