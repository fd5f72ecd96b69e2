-- Uses: notes.
-- Writes or replaces a note, also in a full Redis, because workers announce themselves by notes.
-- ARGV: kind, id, text, lifetime in ms (empty: it does not expire).
write_though_full()
forget_old_notes(ARGV[1])
local texts, expiry = notes_of(ARGV[1])
redis.call('HSET', texts, ARGV[2], ARGV[3])
if ARGV[4] == '' then redis.call('ZREM', expiry, ARGV[2])
else redis.call('ZADD', expiry, now + tonumber(ARGV[4]), ARGV[2]) end
return 1
