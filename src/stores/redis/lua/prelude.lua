-- Begins every script: the keys of the shard, the time, and common functions. KEYS[1] is the shard's base; all names
-- are computed from it. No key has exactly that name: see cluster/queue-shards.ts.
local B = KEYS[1]
local time = redis.call('TIME')
-- The store's one clock; tests render this line for another time.
local now_us = time[1] * 1e6 + time[2]
local now = math.floor(now_us / 1000)

local JOBS, PAST, ATTEMPTS, ENDS = B .. 'jobs', B .. 'past', B .. 'attempts', B .. 'ends'
local BATCH, MASK, LEASES, REVOKED = B .. 'batch', B .. 'mask', B .. 'leases', B .. 'revoked'
local WORKERS, EXPIRY, AT_ONCE, BEATS = B .. 'workers', B .. 'expiry', B .. 'at_once', B .. 'beats'
local COUNTS = B .. 'counts'
local CANCELS, HEARD = B .. 'cancels', B .. 'heard'
local UNIQUE, KEYED, SENDERS, QUEUES, PAUSED = B .. 'unique', B .. 'keyed', B .. 'senders', B .. 'queues', B .. 'paused'
-- One for all shards of a prefix.
local CHANNEL = string.match(B, '^[^{]*') .. 'wake'
local ID_CHARS = 22

-- Lua's own text of a number has 14 digits, tokens have 16.
local function int(number)
  return string.format('%.0f', number)
end

-- The answer to arguments that our clients never send. Redis keeps the writes of a script that fails, so every script
-- checks its arguments before its first write.
local function refused(what)
  return redis.error_reply('HFREFUSED ' .. what)
end

-- Stops a script that finds the data of its shard broken. A check after a write can only fail if something other than these
-- scripts changed a key.
local function check(holds, ...)
  if not holds then error('HFBROKEN ' .. table.concat({ ... }, ' ')) end
end

-- A full Redis refuses a script whose first write may need memory. It never refuses this write, so the scripts that drain
-- queues begin with it.
local function write_though_full()
  redis.call('HDEL', B .. 'void', '')
end

-- One variadic command, in pieces: unpack has a limit, and a piece must be even for pairs. Returns the sum of the replies.
local function write_many(command, key, args)
  local hits = 0
  for first = 1, #args, 1000 do
    hits = hits + redis.call(command, key, unpack(args, first, math.min(first + 999, #args)))
  end
  return hits
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

-- Whether a hash has any entries. Few jobs have one in such hashes, so this saves most lookups.
local function is_used(key)
  return redis.call('HLEN', key) > 0
end

-- Best effort: a missing permission to publish must not make a script fail half-way.
local function hint(text)
  redis.pcall('PUBLISH', CHANNEL, text)
end
