-- Recounts one shard from its records and compares everything that is derived from them. For tests, at rest.
-- KEYS: the shard's base. Answers: what is wrong, in words.
local B, wrong = KEYS[1], {}
local ID, BUCKET = 22, 7

local function expect(holds, ...)
  if not holds and #wrong < 20 then wrong[#wrong + 1] = table.concat({ ... }, ' ') end
end

local function all(name)
  local found, flat = {}, redis.call('HGETALL', B .. name)
  for index = 1, #flat, 2 do found[flat[index]] = flat[index + 1] end
  return found
end

local function size_of(map)
  local size = 0
  for _ in pairs(map) do size = size + 1 end
  return size
end

local function members(key)
  local found, flat = {}, redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  for index = 1, #flat, 2 do found[flat[index]] = flat[index + 1] end
  return found
end

local jobs, heads, places, counts = all('jobs'), {}, {}, {}
for id, record in pairs(jobs) do heads[id] = cjson.decode(string.match(record, '^[^\n]*')) end

local function put(id, place)
  expect(jobs[id], 'no record of', id, 'in', place)
  expect(not places[id], id, 'is in', places[id] or '', 'and in', place)
  places[id] = place
end

local function add(state, queue)
  counts[state .. ':' .. queue] = (counts[state .. ':' .. queue] or 0) + 1
end

-- Waiting: each in the set of its queue, and of its lane if it is ready.
local lanes = all('queues')
for _, key in ipairs(redis.call('KEYS', B .. '*')) do
  local set, rest = string.match(string.sub(key, #B + 1), '^(%a+):(.*)$')
  if set == 'ready' or set == 'suspects' then
    local lane, queue = string.match(rest, '^(-?%d+):(.*)$')
    expect(string.find(lanes[queue] or '', ' ' .. lane .. ' ', 1, true), 'lane', lane, 'of', queue, 'is not known')
    for id in pairs(members(key)) do
      put(id, set)
      local past = cjson.decode(redis.call('HGET', B .. 'past', id) or '{}')
      expect(heads[id][3] == queue and string.format('%.0f', heads[id][2]) == lane, id, 'is in the wrong set', key)
      expect(((past.c or 0) > 0) == (set == 'suspects'), id, 'is in', set, 'with crashes', past.c or 0)
    end
  elseif set == 'delay' then
    for id in pairs(members(key)) do
      put(id, set)
      expect(heads[id][3] == rest, id, 'is in the wrong set', key)
      expect(lanes[rest], 'queue', rest, 'is not known')
    end
  end
end

-- Running: open positions of leases.
local masks, batches = all('mask'), all('batch')
for token, packed in pairs(batches) do
  local worker, queue, _, ids, scores = cmsgpack.unpack(packed)
  expect(redis.call('ZSCORE', B .. 'leases', worker .. ' ' .. token), 'lease', token, 'is not listed')
  expect(#scores == #ids / ID, 'lease', token, 'lacks scores')
  for position = 0, #ids / ID - 1 do
    if string.sub(masks[token] or '', position + 1, position + 1) ~= '1' then
      put(string.sub(ids, position * ID + 1, (position + 1) * ID), 'running')
      add('running', queue)
    end
  end
end
for token in pairs(masks) do expect(batches[token], 'mask of', token, 'without a lease') end
expect(redis.call('ZCARD', B .. 'leases') == size_of(batches), 'leases are listed that do not exist')

-- Final.
local SETS, finals = { c = 'completed', d = 'dead', x = 'cancelled' }, 0
for id, ending in pairs(all('ends')) do
  local set, at = SETS[string.sub(ending, 3, 3)], string.match(ending, '%d+')
  put(id, set)
  finals = finals + 1
  local score = redis.call('ZSCORE', B .. set, id)
  expect(score and tonumber(score) == tonumber(at), id, 'is not in', set, 'by its time')
  if heads[id] then add(set, heads[id][3]) end
  expect(not redis.call('ZSCORE', B .. 'dead_ids', id) == (set ~= 'dead'), id, 'is', set, 'and dead_ids differs')
end
local listed = redis.call('ZCARD', B .. 'completed') + redis.call('ZCARD', B .. 'dead') + redis.call('ZCARD', B .. 'cancelled')
expect(listed == finals, listed, 'final jobs are listed, and there are', finals)
expect(redis.call('ZCARD', B .. 'dead_ids') == redis.call('ZCARD', B .. 'dead'), 'dead_ids has other jobs than dead')

for id in pairs(jobs) do expect(places[id], id, 'is in no state') end

-- Counters.
for name, text in pairs(all('counts')) do
  expect(tonumber(text) == (counts[name] or 0), name, 'counts', text, 'and there are', counts[name] or 0)
  counts[name] = nil
end
for name, number in pairs(counts) do expect(number == 0, name, 'is not counted, and there are', number) end

-- The index by id.
local alive = {}
for id in pairs(jobs) do
  local bucket = string.sub(id, 1, BUCKET)
  alive[bucket] = (alive[bucket] or 0) + 1
  local text, found = redis.call('GET', B .. 'ids:' .. bucket) or '', false
  for at = 1, #text, ID do found = found or string.sub(text, at, at + ID - 1) == id end
  expect(found, id, 'is not in its bucket')
end
for bucket, number in pairs(all('alive')) do
  expect(tonumber(number) == alive[bucket], 'bucket', bucket, 'counts', number, 'and there are', alive[bucket] or 0)
  expect(redis.call('ZSCORE', B .. 'buckets', bucket), 'bucket', bucket, 'is not listed')
end
expect(size_of(alive) == redis.call('ZCARD', B .. 'buckets'), 'buckets are listed that have no jobs')

-- What belongs to jobs.
for _, name in ipairs({ 'past', 'attempts', 'cancels', 'heard', 'keyed' }) do
  for id in pairs(all(name)) do expect(jobs[id], name, 'of', id, 'is left, and the job is gone') end
end
for id in pairs(all('cancels')) do expect(places[id] == 'running', id, 'is to be cancelled and', places[id] or 'gone') end
for id in pairs(all('heard')) do expect(redis.call('HEXISTS', B .. 'cancels', id) == 1, id, 'heard of a cancel that is not there') end
local unique = all('unique')
for id, keyed in pairs(all('keyed')) do
  local rule, holder = string.sub(keyed, 1, 1), unique[string.sub(keyed, 2)]
  local place = places[id] or 'gone'
  local is_waiting = place == 'ready' or place == 'suspects' or place == 'delay'
  expect(holder and string.sub(holder, 1, ID) == id, id, 'holds a key that is not its own')
  expect(is_waiting or (rule == 'u' and place == 'running'), id, 'is', place, 'and holds a key by rule', rule)
end
return wrong
