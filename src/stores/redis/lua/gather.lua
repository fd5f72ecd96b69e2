-- Uses: jobs, waiting, leases.
-- Reads the ids of all jobs in some states at one moment, if they are few. Writes nothing.
-- ARGV: maximum number of ids; states as letters (filter.lua); from when and before when final jobs ended (empty: any time);
--       queues of waiting jobs (none: all).
-- Answers: 1 and the ids; 0 if there are more.
local most, states = tonumber(ARGV[1]), ARGV[2]
local from, before = ARGV[3] == '' and '-inf' or ARGV[3], ARGV[4] == '' and '+inf' or '(' .. ARGV[4]
local FINAL = { c = 'completed', d = 'dead', x = 'cancelled' }

local function is_wanted(state)
  return string.find(states, state, 1, true) ~= nil
end

local queues = { unpack(ARGV, 5) }
if #queues == 0 and (is_wanted('r') or is_wanted('s')) then queues = redis.call('HKEYS', QUEUES) end

local waiting, size = {}, 0
for _, queue in ipairs(queues) do
  if is_wanted('s') then waiting[#waiting + 1] = B .. 'delay:' .. queue end
  for _, lane in ipairs(is_wanted('r') and lanes_of(queue) or {}) do
    waiting[#waiting + 1] = key_of('ready:', lane, queue)
    waiting[#waiting + 1] = key_of('suspects:', lane, queue)
  end
end
for _, key in ipairs(waiting) do size = size + redis.call('ZCARD', key) end
for state, set in pairs(FINAL) do
  if is_wanted(state) then size = size + redis.call('ZCOUNT', B .. set, from, before) end
end
if is_wanted('u') then
  for _, queue in ipairs(redis.call('HKEYS', QUEUES)) do
    size = size + (tonumber(redis.call('HGET', COUNTS, 'running:' .. queue) or '0'))
  end
end
if size > most then return { 0, {} } end

local ids = {}
local function add(more)
  for _, id in ipairs(more) do ids[#ids + 1] = id end
end
for _, key in ipairs(waiting) do add(redis.call('ZRANGE', key, 0, -1)) end
for state, set in pairs(FINAL) do
  if is_wanted(state) then add(redis.call('ZRANGEBYSCORE', B .. set, from, before)) end
end
for _, token in ipairs(is_wanted('u') and redis.call('HKEYS', BATCH) or {}) do
  local lease = lease_of(token)
  for _, position in ipairs(open_positions(lease)) do ids[#ids + 1] = id_at(lease, position) end
end
return { 1, ids }
