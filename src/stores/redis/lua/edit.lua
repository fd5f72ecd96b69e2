-- Uses: jobs, insert, rewrite.
-- Changes a job that waits; it keeps its unique key and what it went through, and a suspect stays one.
-- ARGV: id, payload (empty: stays), priority and head start (empty: stay), due as due_at takes it (-: stays).
-- Answers: e edited, u it runs, f it is final, m missing.
local id, payload, priority, head_start, due = unpack(ARGV)
local record = redis.call('HGET', JOBS, id)
if not record then return 'm' end
if redis.call('HEXISTS', ENDS, id) == 1 then return 'f' end
local queue = head_of(record)[3]
local set, score = waits_in(id, queue)
if not set then return 'u' end

local due_before = set == 'delay:' and score or score + head_start_of(record)
local changed = payload == '' and record or with_payload(record, payload)
if priority ~= '' then
  changed = with_rank(changed, priority, head_start)
  know(queue, tonumber(head_start))
end
-- Before it leaves its set: where there is no memory for it, nothing has happened.
if changed ~= record then redis.call('HSET', JOBS, id, changed) end
redis.call('ZREM', B .. set .. queue, id)
local suspect = (past_of(id).c or 0) > 0
place(id, queue, due == '-' and due_before or due_at(due), head_start_of(changed), suspect)
return 'e'
