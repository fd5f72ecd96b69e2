-- Uses: jobs, waiting, by_id, insert, rewrite.
-- Changes a waiting job. It keeps its unique key and its past; a suspect stays a suspect.
-- ARGV: id, payload (empty: stays), priority and head start (empty: stay), due as due_at takes it (-: stays).
-- Answers: e edited, u it runs, f it is final, m missing.
local id, payload, priority, head_start, due = unpack(ARGV)
local has_rank = tonumber(priority) and tonumber(head_start)
if not has_rank and priority .. head_start ~= '' then return refused('an edit with half a rank') end
if due ~= '-' and not is_due(due) then return refused('an edit with an unknown due time') end
local record = redis.call('HGET', JOBS, id)
if not record then return 'm' end
if redis.call('HEXISTS', ENDS, id) == 1 then return 'f' end
local queue = head_of(record)[3]
local wait = wait_of(id, queue, head_start_of(record))
if not wait then return 'u' end

local changed = payload == '' and record or with_payload(record, payload)
if has_rank then changed = with_rank(changed, priority, head_start) end
-- Before it leaves its set: if Redis is full and refuses this, nothing has happened.
if changed ~= record then write_record(id, changed) end
leave(id, wait)
place(id, queue, due == '-' and wait.due or due_at(due), head_start_of(changed), is_suspect(id))
return 'e'
