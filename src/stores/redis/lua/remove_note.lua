-- Uses: notes.
-- ARGV: kind, id.
-- Answers: 1 if it was there and not over.
forget_old_notes(ARGV[1])
local texts, over = notes_of(ARGV[1])
redis.call('ZREM', over, ARGV[2])
return redis.call('HDEL', texts, ARGV[2])
