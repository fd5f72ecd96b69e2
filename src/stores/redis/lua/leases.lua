-- Leases, as functions. The batch is the fence: a token can settle as long as its batch exists.
--   batch    token -> worker, queue, claimedAt, all ids in one text, scores (MessagePack); never changed
--   mask     token -> a 1 for each settled position; only while some are settled and some are open
--   leases   "worker token", to find the leases of a worker
--   at_once  worker -> how many of its open jobs may be running, in the order of their claims; absent: all of them
--   beats    worker -> the greatest number of a heartbeat so far
--   revoked  token -> when it was revoked, or settled long after its claim, and the mask it had
--   gaps     from -> to: token times after `from` and up to `to` that were never handed out here, see takeover.lua
-- A token is a token time (the server's clock in units of 125 µs, and greater than the last one) times 512, plus a counter of
-- the client.
local DAY_MS = 86400000
local TOKEN_UNIT_US, TOKENS_A_UNIT = 125, 512
local GAPS = B .. 'gaps'

local function lease_of(token)
  local packed = redis.call('HGET', BATCH, token)
  if not packed then return nil end
  local rest, worker, queue, claimed, ids = cmsgpack.unpack_limit(packed, 4, 0)
  return { token = token, worker = worker, queue = queue, claimed = claimed, ids = ids, size = #ids / ID_CHARS,
    packed = packed, rest = rest, mask = redis.call('HGET', MASK, token) }
end

local function scores_of(lease)
  local _, scores = cmsgpack.unpack_limit(lease.packed, 1, lease.rest)
  return scores
end

local function id_at(lease, position)
  return string.sub(lease.ids, position * ID_CHARS + 1, (position + 1) * ID_CHARS)
end

local function is_settled(lease, position)
  return lease.mask and string.byte(lease.mask, position + 1) == 49
end

local function is_position(lease, position)
  return position and position >= 0 and position < lease.size and position % 1 == 0
end

local function open_positions(lease)
  local open = {}
  for position = 0, lease.size - 1 do
    if not is_settled(lease, position) then open[#open + 1] = position end
  end
  return open
end

-- Remembers for a day how to answer a token whose lease is gone.
local function remember(token, mask)
  redis.call('HSET', REVOKED, token, int(now) .. ' ' .. mask)
end

local function drop_lease(lease)
  check(redis.call('HDEL', BATCH, lease.token) == 1, 'no batch of', lease.token)
  if lease.mask then check(redis.call('HDEL', MASK, lease.token) == 1, 'no mask of', lease.token) end
  check(redis.call('ZREM', LEASES, lease.worker .. ' ' .. lease.token) == 1, 'no lease', lease.token)
end

-- Returns the mask of the lease once these positions are settled, and whether none is open then.
local function mask_with(lease, positions)
  local marks, open = {}, lease.size
  for position = 0, lease.size - 1 do
    local settled = is_settled(lease, position)
    marks[position + 1] = settled and '1' or '0'
    if settled then open = open - 1 end
  end
  for _, position in ipairs(positions) do marks[position + 1] = '1' end
  return table.concat(marks), open == #positions
end

-- The one way out of running: ends open positions of a lease, and the lease with its last one. Returns their ids; the
-- caller decides where those jobs go.
local function end_positions(lease, positions)
  local mask, is_over = nil, #positions == lease.size
  if not is_over then mask, is_over = mask_with(lease, positions) end
  if is_over then
    drop_lease(lease)
    -- An unknown token counts as lost a day after its claim, so a late settle is remembered for its repeat.
    if now - lease.claimed > DAY_MS / 2 then remember(lease.token, string.rep('1', lease.size)) end
  else
    write_though_full()
    check(redis.call('HSET', MASK, lease.token, mask) == (lease.mask and 0 or 1), 'no mask of', lease.token)
    lease.mask = mask
  end
  count('running', lease.queue, -#positions)
  local ids = {}
  for index, position in ipairs(positions) do ids[index] = id_at(lease, position) end
  return ids
end

-- Takes a lease away from its worker: ends its open positions, and remembers which ones were settled before. Returns the ids
-- and positions that were open.
local function revoke(lease)
  local settled, open = lease.mask or string.rep('0', lease.size), open_positions(lease)
  local ids = end_positions(lease, open)
  remember(lease.token, settled)
  return ids, open
end

-- Whether neither this server, nor one whose data it has, handed out a token of this token time.
local function is_foreign(token_time)
  if token_time > tonumber(redis.call('GET', B .. 'token') or '0') then return true end
  local gaps = redis.call('HGETALL', GAPS)
  for index = 1, #gaps, 2 do
    if token_time > tonumber(gaps[index]) and token_time <= tonumber(gaps[index + 1]) then return true end
  end
  return false
end

-- The answer to a settle whose lease is gone: a (settled before) or l (lost).
local function answer_of_gone(token, position)
  local revoked = redis.call('HGET', REVOKED, token)
  if revoked then
    local mask = string.match(revoked, ' (.*)')
    local known = position and position >= 0 and string.byte(mask, position + 1) == 49
    return known and 'a' or 'l'
  end
  local token_time = math.floor((tonumber(token) or 0) / TOKENS_A_UNIT)
  local oldest = (now - DAY_MS) * 1000 / TOKEN_UNIT_US
  return (token_time < oldest or is_foreign(token_time)) and 'l' or 'a'
end

local function tokens_of(worker)
  local tokens = {}
  local members = redis.call('ZRANGEBYLEX', LEASES, '[' .. worker .. ' ', '(' .. worker .. '!')
  for _, member in ipairs(members) do tokens[#tokens + 1] = string.sub(member, #worker + 2) end
  return tokens
end
