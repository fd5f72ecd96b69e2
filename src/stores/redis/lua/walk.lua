-- Uses: jobs, waiting, by_id, filter.
-- Goes through jobs in order of id, one step per call. A job that exists during all steps is seen once. Writes nothing.
-- ARGV: all, or dead for dead jobs only; up or down; the id after which to begin (empty: at the first); the lowest and
--       the highest id (empty: no bound); how many jobs are wanted; how many to scan; a filter as filter.lua takes it.
-- Answers: the id after which the next step begins (empty: there is none), how many were scanned, the selected ids.
local source, is_down, after, low, high = ARGV[1], ARGV[2] == 'down', ARGV[3], ARGV[4], ARGV[5]
local want, budget = tonumber(ARGV[6]), tonumber(ARGV[7])
local selected_of = selector(cjson.decode(ARGV[8]))
-- Nothing to check: unlike a bucket, this index has no deleted jobs.
if source == 'dead' and ARGV[8] == '{}' then selected_of = function(ids) return ids end end
local MOST_AT_ONCE = 500

if is_down and after ~= '' and (high == '' or after <= high) then high = '(' .. after
elseif high ~= '' then high = '[' .. high end
if not is_down and after ~= '' and (low == '' or after >= low) then low = '(' .. after
elseif low ~= '' then low = '[' .. low end

-- A range of a sorted set in the order of the walk.
local function range(key, lowest, highest, limit)
  if lowest == '' then lowest = '-' end
  if highest == '' then highest = '+' end
  if is_down then return redis.call('ZREVRANGEBYLEX', key, highest, lowest, 'LIMIT', 0, limit) end
  return redis.call('ZRANGEBYLEX', key, lowest, highest, 'LIMIT', 0, limit)
end

local bottom, is_above = string.sub(low, 2), string.byte(low) == 40
local top, is_below = string.sub(high, 2), string.byte(high) == 40

local function is_within(id)
  if low ~= '' and (id < bottom or (is_above and id == bottom)) then return false end
  return high == '' or id < top or (not is_below and id == top)
end

local looked, found, last = 0, {}, after

-- The ids of a bucket in the order of the walk, each once (one that was deleted and enqueued again is in the text
-- twice), and no more than may be scanned.
local function bucket_ids(bucket)
  local all, ids = ids_in(redis.call('GET', B .. 'ids:' .. bucket)), {}
  local is_sorted = is_ascending(all)
  if not is_sorted then table.sort(all) end
  local is_inside = bucket ~= bucket_of(bottom) and bucket ~= bucket_of(top)
  local first, last_one, step = 1, #all, 1
  if is_down then first, last_one, step = last_one, first, -1 end
  for index = first, last_one, step do
    local id = all[index]
    if (is_inside or is_within(id)) and (is_sorted or id ~= ids[#ids]) then
      ids[#ids + 1] = id
      if #ids >= budget - looked then break end
    end
  end
  return ids
end

-- Whether the walk is over: it has found enough, or has scanned enough. Chunks grow while little is found.
local size = math.max(16, math.min(want, MOST_AT_ONCE))
local function look_at(ids)
  local first = 1
  while first <= #ids do
    local behind = math.min(first + size - 1, #ids, first + budget - looked - 1)
    local selected = selected_of({ unpack(ids, first, behind) })
    local room = want - #found
    for index = 1, math.min(room, #selected) do found[#found + 1] = selected[index] end
    looked = looked + behind - first + 1
    last = #selected > room and found[#found] or ids[behind]
    if #found >= want or looked >= budget then return true end
    first = behind + 1
    size = math.min(2 * size, MOST_AT_ONCE)
  end
  return false
end

local function walk_dead()
  local ids = range(B .. 'dead_ids', low, high, budget)
  return look_at(ids) or #ids == budget
end

local MOST_BUCKETS = 500
local function walk_all()
  local lowest = low == '' and '' or '[' .. string.sub(low, 2, BUCKET_CHARS + 1)
  local highest = high == '' and '' or '[' .. string.sub(high, 2, BUCKET_CHARS + 1)
  local buckets = range(BUCKETS, lowest, highest, MOST_BUCKETS)
  for _, bucket in ipairs(buckets) do
    if look_at(bucket_ids(bucket)) then return true end
  end
  return #buckets == MOST_BUCKETS
end

local goes_on
if source == 'dead' then goes_on = walk_dead() else goes_on = walk_all() end
return { goes_on and last or '', looked, found }
