-- What is known of a worker.
-- ARGV: worker.
-- Answers: its lease in ms, what is left of that, and how many of its jobs can run at once (empty: all); nothing for one
--       that is not known.
local lease = redis.call('HGET', WORKERS, ARGV[1])
if not lease then return {} end
local at_once = redis.call('HGET', AT_ONCE, ARGV[1]) or ''
return { tonumber(lease), int(redis.call('ZSCORE', EXPIRY, ARGV[1]) - now), at_once }
