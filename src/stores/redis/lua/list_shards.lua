-- Lists the queues that have a shard, on a cluster.
return redis.call('SMEMBERS', B .. 'shards')
