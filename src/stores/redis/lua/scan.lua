-- Uses: jobs, leases.
-- One step of going through the ids of a set. What is there from the first step to the last is seen.
-- ARGV: jobs, batch, or the rest of the name of a sorted set; cursor; only ids after (>) or before (<) this one, or empty;
--       a filter (JSON): names, queues, fingerprints, and for the sets of final jobs from and before which time.
-- Answers: the next cursor, and ids. A fingerprint is only looked for in the text of the past, where a log line may have it
--       as well.
local set, cursor, bound = ARGV[1], ARGV[2], string.sub(ARGV[3], 2)
local only = string.sub(ARGV[3], 1, 1)

local function is_beyond(id)
  return only == '' or (only == '>' and id > bound) or (only == '<' and id < bound)
end

local filter = cjson.decode(ARGV[4])
local from, before = tonumber(filter.from), tonumber(filter.before)

local function is_in_time(score)
  return (not from or tonumber(score) >= from) and (not before or tonumber(score) < before)
end

local function set_of(texts)
  if not texts then return nil end
  local found = {}
  for _, text in ipairs(texts) do found[text] = true end
  return found
end

local names, queues = set_of(filter.names), set_of(filter.queues)

local function is_named(record)
  local head = record and head_of(record)
  return head and (not names or names[head[4]]) and (not queues or queues[head[3]])
end

local function failed_so(past)
  for _, fingerprint in ipairs(past and filter.fingerprints or {}) do
    if string.find(past, fingerprint, 1, true) then return true end
  end
  return false
end

local function only_if(ids, key, is_meant)
  if #ids == 0 then return ids end
  local found = {}
  for index, text in ipairs(read_many(key, ids)) do
    if is_meant(text) then found[#found + 1] = ids[index] end
  end
  return found
end

local function matching(ids)
  if filter.fingerprints then ids = only_if(ids, PAST, failed_so) end
  if names or queues then ids = only_if(ids, JOBS, is_named) end
  return ids
end

local ids = {}
local is_hash = set == 'jobs' or set == 'batch'
local step = redis.call(is_hash and 'HSCAN' or 'ZSCAN', B .. set, cursor, 'COUNT', set == 'batch' and 20 or 1000)
for index = 1, #step[2], 2 do
  if set == 'batch' then
    local lease = lease_of(step[2][index])
    for _, position in ipairs(open_positions(lease)) do
      local id = id_at(lease, position)
      if is_beyond(id) then ids[#ids + 1] = id end
    end
  elseif is_beyond(step[2][index]) and (is_hash or is_in_time(step[2][index + 1])) then
    ids[#ids + 1] = step[2][index]
  end
end
return { step[1], matching(ids) }
