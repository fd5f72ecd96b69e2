-- Creates or changes a schedule; its last tick stays. Without a spec, removes it and its last tick.
-- ARGV: name, next tick (empty: none), spec; or only the name. schedules.lua tells how it is stored.
-- Answers: 1, or 0 if there was no schedule to remove.
if not ARGV[2] then return redis.call('HDEL', B .. 'schedules', ARGV[1]) end
local text = redis.call('HGET', B .. 'schedules', ARGV[1])
local last = text and string.match(text, '^%S+') or '-'
local next_tick = ARGV[2] == '' and '-' or ARGV[2]
redis.call('HSET', B .. 'schedules', ARGV[1], last .. ' ' .. next_tick .. ' ' .. ARGV[3])
return 1
