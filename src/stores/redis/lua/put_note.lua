-- Uses: notes.
-- Writes or replaces a note, even in a full Redis, because workers announce themselves by notes. Without a text,
-- removes it.
-- ARGV: kind, id, text, lifetime in ms (empty: it does not expire); or only kind and id.
-- Answers: 1, or 0 if there was no note to remove.
write_though_full()
forget_old_notes(ARGV[1])
local texts, expiry = notes_of(ARGV[1])
if not ARGV[3] then
  redis.call('ZREM', expiry, ARGV[2])
  return redis.call('HDEL', texts, ARGV[2])
end
redis.call('HSET', texts, ARGV[2], ARGV[3])
if ARGV[4] == '' then redis.call('ZREM', expiry, ARGV[2])
else redis.call('ZADD', expiry, now + tonumber(ARGV[4]), ARGV[2]) end
return 1
