-- Uses: notes.
-- All notes of a kind: id and text, in turn.
-- ARGV: kind.
forget_old_notes(ARGV[1])
return redis.call('HGETALL', (notes_of(ARGV[1])))
