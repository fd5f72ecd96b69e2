-- Which leases hold jobs, as a function: a table from id to its lease and position. Looks at every batch.
local FEW = 8

local function note(wanted, found, lease, position)
  local id = id_at(lease, position)
  if wanted[id] and not is_settled(lease, position) then found[id] = { lease = lease, position = position } end
end

local function find_running(ids)
  local wanted, found = {}, {}
  if #ids == 0 then return found end
  for _, id in ipairs(ids) do wanted[id] = true end
  local batches = redis.call('HGETALL', BATCH)
  for index = 1, #batches, 2 do
    local is_among = #ids > FEW
    for _, id in ipairs(is_among and {} or ids) do
      is_among = is_among or string.find(batches[index + 1], id, 1, true) ~= nil
    end
    if is_among then
      local lease = lease_of(batches[index])
      for position = 0, lease.size - 1 do note(wanted, found, lease, position) end
    end
  end
  return found
end
