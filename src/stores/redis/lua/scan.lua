-- Uses: jobs, leases.
-- One step of going through the ids of a set. What is there from the first step to the last is seen.
-- ARGV: jobs, batch, or the rest of the name of a sorted set; cursor; only ids after (>) or before (<) this one, or empty;
--       only jobs of these names and of these queues (JSON, or empty).
-- Answers: the next cursor, and ids.
local set, cursor, bound = ARGV[1], ARGV[2], string.sub(ARGV[3], 2)
local only = string.sub(ARGV[3], 1, 1)

local function is_beyond(id)
  return only == '' or (only == '>' and id > bound) or (only == '<' and id < bound)
end

local function wanted(json)
  if json == '' then return nil end
  local found = {}
  for _, text in ipairs(cjson.decode(json)) do found[text] = true end
  return found
end

local names, queues = wanted(ARGV[4]), wanted(ARGV[5])

local function matching(ids)
  if not (names or queues) or #ids == 0 then return ids end
  local found = {}
  for index, record in ipairs(read_many(JOBS, ids)) do
    local head = record and head_of(record)
    if head and (not names or names[head[4]]) and (not queues or queues[head[3]]) then found[#found + 1] = ids[index] end
  end
  return found
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
  elseif is_beyond(step[2][index]) then
    ids[#ids + 1] = step[2][index]
  end
end
return { step[1], matching(ids) }
