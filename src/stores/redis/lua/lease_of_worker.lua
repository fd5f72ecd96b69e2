-- Reads the registration of a worker.
-- ARGV: worker.
-- Answers: its lease in ms, how much of that is left, and how many of its jobs can run at once (empty: all); an empty list if
--       it is not registered.
local lease = redis.call('HGET', WORKERS, ARGV[1])
if not lease then return {} end
local at_once = redis.call('HGET', AT_ONCE, ARGV[1]) or ''
return { tonumber(lease), int(redis.call('ZSCORE', EXPIRY, ARGV[1]) - now), at_once }
