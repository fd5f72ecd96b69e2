-- Uses: jobs, waiting, filter.
-- Groups the dead jobs among these by queue, name and fingerprint of their error. Writes nothing.
-- ARGV: a filter as filter.lua takes it, ids.
-- Answers: for each group the number of jobs, when the first and the last of them ended, the one that ended last, its queue
--       and name, and the error that it ended with (JSON).
local groups, order = {}, {}

local function is_newer(id, ended, group)
  return ended > group.last or (ended == group.last and id > group.newest)
end

local function add(id, record, ending, past)
  local ended, err = tonumber(string.match(ending, '%d+')), cjson.decode(past).e
  local beginning = beginning_of(record)
  local key = table.concat({ beginning.queue, beginning.name, cjson.decode(err).fingerprint }, '\n')
  local group = groups[key]
  if not group then
    group = { size = 0, first = ended, last = -1, beginning = beginning }
    groups[key] = group
    order[#order + 1] = group
  end
  group.size = group.size + 1
  group.first = math.min(group.first, ended)
  if is_newer(id, ended, group) then group.last, group.newest, group.err = ended, id, err end
end

local ids = selector(cjson.decode(ARGV[1]))({ unpack(ARGV, 2) })
if #ids > 0 then
  local records, ends, pasts = read_many(JOBS, ids), read_many(ENDS, ids), read_many(PAST, ids)
  for index, id in ipairs(ids) do add(id, records[index], ends[index], pasts[index]) end
end
local answers = {}
for index, group in ipairs(order) do
  answers[index] = { group.size, int(group.first), int(group.last), group.newest, group.beginning.queue,
    group.beginning.name, group.err }
end
return answers
