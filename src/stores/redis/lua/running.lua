-- Finds the leases of running jobs, as a function. There is no index from a job to its lease, because that would make
-- every claim more expensive, so this searches all batches until it has found every job.

-- Whether a batch mentions one of the ids.
local function has_any(packed, ids)
  for _, id in ipairs(ids) do
    if string.find(packed, id, 1, true) then return true end
  end
  return false
end

-- Adds the wanted jobs that are open in a lease. Returns how many.
local function find_in(token, packed, wanted, found)
  local _, _, _, _, ids = cmsgpack.unpack_limit(packed, 4, 0)
  local lease, count_of = nil, 0
  for at = 1, #ids, ID_CHARS do
    local id = string.sub(ids, at, at + ID_CHARS - 1)
    if wanted[id] and not found[id] then
      lease = lease or lease_of(token)
      local position = (at - 1) / ID_CHARS
      if not is_settled(lease, position) then
        found[id] = { lease = lease, position = position }
        count_of = count_of + 1
      end
    end
  end
  return count_of
end

-- Searching a batch for each of many ids would take longer than splitting it into its ids.
local MANY = 8

-- Returns a table from the id of each running job to its lease and position.
local function find_running(ids)
  local wanted, found, missing, cursor = {}, {}, #ids, '0'
  if missing == 0 then return found end
  for _, id in ipairs(ids) do wanted[id] = true end
  repeat
    local scanned = redis.call('HSCAN', BATCH, cursor, 'COUNT', 200)
    local batches = scanned[2]
    cursor = scanned[1]
    for index = 1, #batches, 2 do
      local token, packed = batches[index], batches[index + 1]
      if #ids > MANY or has_any(packed, ids) then missing = missing - find_in(token, packed, wanted, found) end
    end
  until cursor == '0' or missing <= 0
  return found
end
