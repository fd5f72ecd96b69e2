-- An index of all jobs of the shard by id, as functions: for lists and bulk changes. A sorted set of all ids would cost
-- 3 µs and 110 bytes per job; buckets of ids cost a tenth of that.
--   ids:<bucket>  the ids of all jobs whose id begins with the same 7 characters, in one text, in the order of enqueue. A
--                 bucket is 64 ms of the clock that made the ids. Deleted jobs stay in the text until the bucket has no
--                 job left, or sweep.lua packs it.
--   buckets       all buckets, in order
--   alive         bucket -> number of its jobs that are not forgotten
local BUCKET_CHARS = 7
local BUCKETS, ALIVE = B .. 'buckets', B .. 'alive'

local function bucket_of(id)
  return string.sub(id, 1, BUCKET_CHARS)
end

local function is_ascending(ids)
  for index = 2, #ids do
    if ids[index] <= ids[index - 1] then return false end
  end
  return true
end

-- Calls visit(bucket, first, last) for each run of ids with the same bucket. Ids that ascend, as those of one flush do,
-- are not checked one by one: if both ends of a range share a bucket, all of it does.
local function each_bucket(ids, visit)
  if #ids == 1 then return visit(bucket_of(ids[1]), 1, 1) end
  local function visit_part(first, last)
    local bucket = bucket_of(ids[first])
    if bucket == bucket_of(ids[last]) then return visit(bucket, first, last) end
    local middle = math.floor((first + last) / 2)
    visit_part(first, middle)
    visit_part(middle + 1, last)
  end
  if is_ascending(ids) then return visit_part(1, #ids) end
  for index = 1, #ids do visit(bucket_of(ids[index]), index, index) end
end

local function add_to_index(ids)
  each_bucket(ids, function(bucket, first, last)
    local size = last - first + 1
    if redis.call('HINCRBY', ALIVE, bucket, size) == size then
      check(redis.call('ZADD', BUCKETS, 0, bucket) == 1, 'bucket', bucket, 'is known already')
    end
    redis.call('APPEND', B .. 'ids:' .. bucket, table.concat(ids, '', first, last))
  end)
end

local function remove_from_index(ids)
  each_bucket(ids, function(bucket, first, last)
    local left = redis.call('HINCRBY', ALIVE, bucket, first - last - 1)
    check(left >= 0, 'bucket', bucket, 'has fewer jobs than are forgotten')
    if left > 0 then return end
    check(redis.call('HDEL', ALIVE, bucket) == 1, 'bucket', bucket, 'is not counted')
    check(redis.call('ZREM', BUCKETS, bucket) == 1, 'bucket', bucket, 'is not known')
    redis.call('DEL', B .. 'ids:' .. bucket)
  end)
end

local function ids_in(text)
  local ids = {}
  for at = 1, #text, ID_CHARS do ids[#ids + 1] = string.sub(text, at, at + ID_CHARS - 1) end
  return ids
end
