-- Uses: jobs, waiting, by_id, insert, hand_over.
-- Writes all jobs of a flush without unique keys, or none of them, once for each number of a sender. Decodes nothing.
-- ARGV: sender, number, number of groups; each group: queue, head start, n (now) or d (delayed), number of jobs, then for each
--       job its id, due (only if delayed) and tail: the record without its first two numbers.
-- Answers: '' for "all inserted".
local sender, seq = ARGV[1], tonumber(ARGV[2])
local answered = remembered(sender, seq)
if answered then return answered end

-- Number of ARGV entries per job.
local WIDTHS = { n = 2, d = 3 }
local groups, all = {}, {}
local at = 4
for index = 1, tonumber(ARGV[3]) do
  local size, width = tonumber(ARGV[at + 3]), WIDTHS[ARGV[at + 2]]
  if not (size and width) then return refused('a group of jobs of an unknown kind') end
  groups[index] = { queue = ARGV[at], head_start = tonumber(ARGV[at + 1]), width = width, first = at + 4, size = size }
  for job = 0, size - 1 do
    local first = at + 4 + job * width
    all[#all + 1] = ARGV[first]
    if width == 3 and not is_due(ARGV[first + 1] or '?') then return refused('a job with an unknown due time') end
  end
  at = at + 4 + size * width
end
if at ~= #ARGV + 1 then return refused('a job with a part missing') end
local refusal = refuse_known(all)
if refusal then return refusal end

local function write_ready(group, start)
  local scored, records = {}, {}
  local rank = int(now - group.head_start)
  for job = 0, group.size - 1 do
    local id = ARGV[group.first + 2 * job]
    scored[2 * job + 1], scored[2 * job + 2] = rank, id
    records[2 * job + 1], records[2 * job + 2] = id, start .. ARGV[group.first + 2 * job + 1]
  end
  check(write_many('HSET', JOBS, records) == group.size, 'a new job is there already')
  into_ready(group.queue, group.head_start, false, scored)
end

local function write_delayed(group, start)
  know(group.queue, group.head_start)
  for job = 0, group.size - 1 do
    local first = group.first + 3 * job
    check(redis.call('HSET', JOBS, ARGV[first], start .. ARGV[first + 2]) == 1, 'a new job is there already')
    place(ARGV[first], group.queue, due_at(ARGV[first + 1]), group.head_start, false)
  end
end

remember_flush(sender, seq, '')
add_to_index(all)
for _, group in ipairs(groups) do
  local start = '[' .. int(now) .. ',' .. int(group.head_start) .. ','
  if group.width == 2 then write_ready(group, start) else write_delayed(group, start) end
end
if next(filled) then tell_filled(#all, 4) end
return ''
