-- In front of every script: the keys of the shard, the time, and what they all use.
-- KEYS[1] is the shard's base; all names are computed from it. No key has that name alone: see cluster/queue-shards.ts.
local B = KEYS[1]
local time = redis.call('TIME')
-- The store's one clock; tests render this line for another time.
local now_us = time[1] * 1e6 + time[2]
local now = math.floor(now_us / 1000)

local JOBS, PAST, ATTEMPTS, ENDS = B .. 'jobs', B .. 'past', B .. 'attempts', B .. 'ends'
local BATCH, MASK, LEASES, REVOKED = B .. 'batch', B .. 'mask', B .. 'leases', B .. 'revoked'
local WORKERS, EXPIRY, CANCELS, COUNTS = B .. 'workers', B .. 'expiry', B .. 'cancels', B .. 'counts'
local UNIQUE, KEYED, LANES, QUEUES, PAUSED = B .. 'unique', B .. 'keyed', B .. 'lanes', B .. 'queues', B .. 'paused'
-- One for all shards of a prefix.
local CHANNEL = string.match(B, '^[^{]*') .. 'wake'
local ID_CHARS = 22

-- Lua's own text of a number has 14 digits, tokens have 16.
local function int(number)
  return string.format('%.0f', number)
end

-- A full Redis refuses only what may grow it as the first write of a script. This one never is refused, so that what
-- drains the queue goes through.
local function write_though_full()
  redis.call('HDEL', B .. 'void', '')
end

-- Variadic in pieces: unpack has its limit, and a piece must be even for pairs.
local function write_many(command, key, args)
  for first = 1, #args, 1000 do
    redis.call(command, key, unpack(args, first, math.min(first + 999, #args)))
  end
end

local function read_many(key, fields)
  if #fields <= 1000 then return redis.call('HMGET', key, unpack(fields)) end
  local values = {}
  for first = 1, #fields, 1000 do
    local piece = redis.call('HMGET', key, unpack(fields, first, math.min(first + 999, #fields)))
    for index = 1, #piece do values[#values + 1] = piece[index] end
  end
  return values
end

-- Whether a hash that few jobs are in has anything at all: most lookups are spared by this.
local function is_used(key)
  return redis.call('HLEN', key) > 0
end

-- Best effort: a user who may not publish must not make a script fail half-way.
local function hint(text)
  redis.pcall('PUBLISH', CHANNEL, text)
end
