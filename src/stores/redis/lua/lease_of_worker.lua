-- What is known of a worker.
-- ARGV: worker.
-- Answers: its lease in ms and what is left of that; nothing for one that is not known.
local lease = redis.call('HGET', WORKERS, ARGV[1])
if not lease then return {} end
return { tonumber(lease), int(redis.call('ZSCORE', EXPIRY, ARGV[1]) - now) }
