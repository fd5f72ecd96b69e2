-- Uses: notes.
-- Lists all notes of a kind: id, text, id, text …
-- ARGV: kind.
forget_old_notes(ARGV[1])
return redis.call('HGETALL', (notes_of(ARGV[1])))
