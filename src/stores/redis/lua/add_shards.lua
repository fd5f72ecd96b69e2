-- Remembers for good that queues have a shard, on a cluster.
-- ARGV: queues.
return redis.call('SADD', B .. 'shards', unpack(ARGV))
