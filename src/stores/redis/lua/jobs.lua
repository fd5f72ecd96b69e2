-- Records of jobs, counters and unique keys, as functions.
--   jobs     id -> [createdAt,headStart,queue,name,priority,maxAttempts,maxCrashes,uniqueKey,uniqueHold,options]\n payload
--   past     id -> {a: attempts that count, c: crashes, n: number of attempt records, e: error, p: progress,
--            l: [log lines]}; absent for a job that was never claimed
--   attempts id -> the newest attempt records (as many as `n` in its past), oldest first, one line of JSON each
--   counts   state:queue -> number of jobs; only for running and the final states, the others are sizes of sets
--   cancels  id -> reason of a requested cancel (JSON); only while it runs
--   heard    id -> 1 once its worker has reported that the cancel took effect; only together with the cancel
--   keyed    id -> r or u, then the unique key; only while the job holds it

-- Everything but the payload, which no script decodes.
local function head_of(record)
  return cjson.decode(string.match(record, '^[^\n]*'))
end

local function head_start_of(record)
  return tonumber(string.match(record, '^%[%d+,(-?%d+)'))
end

-- Whether a text can be the error of a job: a JSON object.
local function is_error(text)
  return type(text) == 'string' and string.sub(text, 1, 1) == '{'
end

local function past_of(id)
  local text = redis.call('HGET', PAST, id)
  return text and cjson.decode(text) or {}
end

local function write_past(id, past)
  if next(past) == nil then redis.call('HDEL', PAST, id)
  else redis.call('HSET', PAST, id, cjson.encode(past)) end
end

-- Replaces the record of an existing job.
local function write_record(id, record)
  check(redis.call('HSET', JOBS, id, record) == 0, id, 'had no record')
end

-- A suspect is a job that lost a worker before.
local function is_suspect(id)
  return (past_of(id).c or 0) > 0
end

local function count(state, queue, by)
  local left = redis.call('HINCRBY', COUNTS, state .. ':' .. queue, by)
  check(left >= 0, state, 'jobs of', queue, 'are', left)
end

-- Frees the key if the job still holds it.
local function free_key(id, keyed)
  local key = string.sub(keyed, 2)
  local holder = redis.call('HGET', UNIQUE, key)
  if holder and string.sub(holder, 1, ID_CHARS) == id then redis.call('HDEL', UNIQUE, key) end
  check(redis.call('HDEL', KEYED, id) == 1, 'no key of', id)
end

-- Frees the keys of jobs that were claimed (only r) or that ended (all rules).
local function free_keys(ids, only)
  if not is_used(KEYED) then return end
  for index, keyed in ipairs(read_many(KEYED, ids)) do
    if keyed and (only == nil or string.sub(keyed, 1, 1) == only) then free_key(ids[index], keyed) end
  end
end
