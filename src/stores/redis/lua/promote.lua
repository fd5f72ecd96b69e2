-- Uses: jobs, waiting.
-- Makes due jobs ready, the earliest of all queues first, no more than the limit. Reads about four jobs for each that
-- it moves, and one job of every other queue, however many are due.
-- ARGV: limit.
-- Answers: how many, and when the next job is due (in ms from now; empty: none).
write_though_full()
local limit = tonumber(ARGV[1])

-- A front is the beginning of one queue's scheduled jobs, read in chunks: `jobs` is the chunk (id, due time, id, …),
-- `at` the next one in it, `offset` the number of jobs before the chunk, `size` the size of the next chunk.
local function read_piece(front)
  front.jobs = redis.call('ZRANGE', front.key, front.offset, front.offset + front.size - 1, 'WITHSCORES')
  front.at = 1
end

-- Sets `id` and `due` to those of the next job; nil at the end of the queue.
local function show_next(front)
  if not front.jobs[front.at] then
    front.offset = front.offset + #front.jobs / 2
    front.size = 4 * front.size
    read_piece(front)
  end
  front.id, front.due = front.jobs[front.at], tonumber(front.jobs[front.at + 1])
end

local function comes_first(front, other)
  if not front.due or not other.due then return front.due ~= nil and other.due == nil end
  return front.due < other.due or (front.due == other.due and front.id < other.id)
end

local fronts = {}
for _, queue in ipairs(redis.call('HKEYS', QUEUES)) do
  local front = { queue = queue, key = B .. 'delay:' .. queue, offset = 0, size = 1, taken = {} }
  read_piece(front)
  if #front.jobs > 0 then
    show_next(front)
    fronts[#fronts + 1] = front
  end
end
-- A sorted list is a heap: fronts[n] comes before fronts[2n] and fronts[2n + 1].
table.sort(fronts, comes_first)

-- Restores the heap after the first front has changed.
local function sink_first()
  local at, size = 1, #fronts
  while 2 * at <= size do
    local child = 2 * at
    if child < size and comes_first(fronts[child + 1], fronts[child]) then child = child + 1 end
    if not comes_first(fronts[child], fronts[at]) then return end
    fronts[at], fronts[child] = fronts[child], fronts[at]
    at = child
  end
end

local promoted, first = 0, fronts[1]
while promoted < limit and first and first.due and first.due <= now do
  first.taken[#first.taken + 1] = first.id
  first.taken[#first.taken + 1] = first.due
  promoted = promoted + 1
  first.at = first.at + 2
  show_next(first)
  sink_first()
  first = fronts[1]
end

-- Moves the first jobs of a queue; those with the same head start together.
local function move(queue, key, taken)
  local ids, groups = {}, {}
  for index = 1, #taken, 2 do ids[#ids + 1] = taken[index] end
  check(redis.call('ZREMRANGEBYRANK', key, 0, #ids - 1) == #ids, 'fewer jobs in', key, 'than were read')
  for index, record in ipairs(read_many(JOBS, ids)) do
    local id, head_start = ids[index], head_start_of(record)
    local suspect = is_suspect(id)
    local name = int(head_start) .. tostring(suspect)
    groups[name] = groups[name] or { head_start = head_start, suspect = suspect, scored = {} }
    local scored = groups[name].scored
    scored[#scored + 1] = int(taken[2 * index] - head_start)
    scored[#scored + 1] = id
  end
  for _, group in pairs(groups) do into_ready(queue, group.head_start, group.suspect, group.scored) end
end
for _, front in ipairs(fronts) do
  if #front.taken > 0 then move(front.queue, front.key, front.taken) end
end

local next_at = first and first.due
return { promoted, next_at and int(math.max(0, next_at - now)) or '' }
