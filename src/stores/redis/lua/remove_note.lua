-- Uses: notes.
-- Removes a note.
-- ARGV: kind, id.
-- Answers: 1 if it was there and had not expired.
forget_old_notes(ARGV[1])
local texts, expiry = notes_of(ARGV[1])
redis.call('ZREM', expiry, ARGV[2])
return redis.call('HDEL', texts, ARGV[2])
