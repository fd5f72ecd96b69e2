-- Creates or changes a schedule; the last tick that it fired stays.
-- ARGV: name, next tick (empty: none), spec. schedules.lua tells how it is stored.
local text = redis.call('HGET', B .. 'schedules', ARGV[1])
local last = text and string.match(text, '^%S+') or '-'
local next_tick = ARGV[2] == '' and '-' or ARGV[2]
redis.call('HSET', B .. 'schedules', ARGV[1], last .. ' ' .. next_tick .. ' ' .. ARGV[3])
return 1
