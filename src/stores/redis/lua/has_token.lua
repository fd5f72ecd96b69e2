-- Whether this shard has granted a token that still stands or was taken away.
-- ARGV: token.
return math.max(redis.call('HEXISTS', BATCH, ARGV[1]), redis.call('HEXISTS', REVOKED, ARGV[1]))
