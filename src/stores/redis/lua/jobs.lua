-- What becomes of a job, as functions: every script that moves one uses these, and nothing else writes these keys.
--   jobs     id -> [createdAt,headStart,queue,name,priority,maxAttempts,maxCrashes,uniqueKey,uniqueHold,options]\n payload
--   past     id -> {a: attempts that count, c: crashes, n: records of attempts, e: error, p: progress, l: [log lines]};
--            absent for a virgin job
--   attempts id -> as many records of its newest attempts as its past says, oldest first, a line of JSON each
--   ends     id -> [state,finishedAt,rank,whether the last attempt counts, …]; state c (then runMs, whether its result was
--            dropped, result, worker), d or x (then its reason)
--   keyed    id -> r or u, then the unique key; only while the job's state holds it
local FINAL_SETS = { c = 'completed', d = 'dead', x = 'cancelled' }

-- Everything but the payload, which is never decoded here.
local function head_of(record)
  return cjson.decode(string.match(record, '^[^\n]*'))
end

local function head_start_of(record)
  return tonumber(string.match(record, '^%[%d+,(-?%d+)'))
end

local function past_of(id)
  local text = redis.call('HGET', PAST, id)
  return text and cjson.decode(text) or {}
end

local function write_past(id, past)
  if next(past) == nil then redis.call('HDEL', PAST, id)
  else redis.call('HSET', PAST, id, cjson.encode(past)) end
end

local function count(state, queue, by)
  redis.call('HINCRBY', COUNTS, state .. ':' .. queue, by)
end

-- Lets go of the key, if this job still is its holder.
local function free_key(id, keyed)
  local key = string.sub(keyed, 2)
  local holder = redis.call('HGET', UNIQUE, key)
  if holder and string.sub(holder, 1, ID_CHARS) == id then redis.call('HDEL', UNIQUE, key) end
  redis.call('HDEL', KEYED, id)
end

-- Of jobs that are claimed (r) or final (all rules).
local function free_keys(ids, only)
  if not is_used(KEYED) then return end
  for index, keyed in ipairs(read_many(KEYED, ids)) do
    if keyed and (only == nil or string.sub(keyed, 1, 1) == only) then free_key(ids[index], keyed) end
  end
end

local function make_ready(id, queue, rank, suspect)
  local key = B .. (suspect and 'suspects:' or 'ready:') .. queue
  redis.call('ZADD', key, rank, id)
  if redis.call('ZCARD', key) == 1 then hint('r ' .. queue) end
end

local function make_wait(id, queue, due)
  local key = B .. 'delay:' .. queue
  redis.call('ZADD', key, due, id)
  -- Only the first to fall due is worth a word.
  if redis.call('ZRANGE', key, 0, 0)[1] == id then hint('d ' .. int(due - now)) end
end

-- Where a job that is due at a time belongs.
local function place(id, queue, due, head_start, suspect)
  if due > now then make_wait(id, queue, due)
  else make_ready(id, queue, due - head_start, suspect) end
end

-- Where a waiting job stands, and its score; nil for one that does not wait.
local function waits_in(id, queue)
  for _, set in ipairs({ 'ready:', 'suspects:', 'delay:' }) do
    local score = redis.call('ZSCORE', B .. set .. queue, id)
    if score then return set, tonumber(score) end
  end
  return nil
end

-- `detail` ends the JSON array; `ran` tells whether the last attempt counts.
local function finish(id, queue, state, rank, ran, detail)
  redis.call('HSET', ENDS, id, '["' .. state .. '",' .. int(now) .. ',' .. rank .. ',' .. ran .. detail .. ']')
  redis.call('ZADD', B .. FINAL_SETS[state], now, id)
  count(FINAL_SETS[state], queue, 1)
  redis.call('HDEL', CANCELS, id)
  free_keys({ id })
end

-- Of final jobs nothing is left.
local function forget(ids)
  local records = read_many(JOBS, ids)
  for index, ending in ipairs(read_many(ENDS, ids)) do
    local set = FINAL_SETS[string.sub(ending, 3, 3)]
    redis.call('ZREM', B .. set, ids[index])
    count(set, head_of(records[index])[3], -1)
  end
  write_many('HDEL', JOBS, ids)
  write_many('HDEL', PAST, ids)
  if is_used(ATTEMPTS) then write_many('HDEL', ATTEMPTS, ids) end
  write_many('HDEL', ENDS, ids)
end
