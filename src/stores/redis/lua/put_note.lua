-- Uses: notes.
-- Writes or replaces a note. Also in a full Redis: workers tell by them that they are there.
-- ARGV: kind, id, text, for how long in ms (empty: it stays).
write_though_full()
forget_old_notes(ARGV[1])
local texts, over = notes_of(ARGV[1])
redis.call('HSET', texts, ARGV[2], ARGV[3])
if ARGV[4] == '' then redis.call('ZREM', over, ARGV[2])
else redis.call('ZADD', over, now + tonumber(ARGV[4]), ARGV[2]) end
return 1
