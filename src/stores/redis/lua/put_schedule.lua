-- Creates or changes a schedule; the last slot that it has fired stays.
-- ARGV: schedule, next slot (empty: none), spec. Stored as "last next spec", - for none.
local text = redis.call('HGET', B .. 'schedules', ARGV[1])
local last = text and string.match(text, '^%S+') or '-'
local next_slot = ARGV[2] == '' and '-' or ARGV[2]
redis.call('HSET', B .. 'schedules', ARGV[1], last .. ' ' .. next_slot .. ' ' .. ARGV[3])
return 1
