-- Answers 1 if this shard granted the token and its lease exists or was revoked.
-- ARGV: token.
return math.max(redis.call('HEXISTS', BATCH, ARGV[1]), redis.call('HEXISTS', REVOKED, ARGV[1]))
