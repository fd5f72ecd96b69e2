-- Uses: jobs, waiting, filter.
-- Tells which of the given jobs a filter selects. Writes nothing.
-- ARGV: a filter as filter.lua takes it, ids.
-- Answers: ids, in the same order.
return selector(cjson.decode(ARGV[1]))({ unpack(ARGV, 2) })
