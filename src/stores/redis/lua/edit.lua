-- Edits of waiting jobs, as functions. An edit is a list: payload (empty: stays), priority and head start (empty: stay), due as
-- due_at takes it (-: stays). A job keeps its unique key and its past; a suspect stays a suspect.

-- Returns what is wrong with an edit, or nil.
local function fault_of_edit(edit)
  local _, priority, head_start, due = unpack(edit)
  local has_rank = tonumber(priority) and tonumber(head_start)
  if not has_rank and priority .. head_start ~= '' then return 'an edit with half a rank' end
  return due ~= '-' and not is_due(due) and 'an edit with an unknown due time' or nil
end

-- Edits a job that is not final. Returns its letter: c changed, u it runs.
local function edit_one(id, record, edit)
  local payload, priority, head_start, due = unpack(edit)
  local queue = head_of(record)[3]
  local wait = wait_of(id, queue, head_start_of(record))
  if not wait then return 'u' end
  local changed = payload == '' and record or with_payload(record, payload)
  if tonumber(priority) then changed = with_rank(changed, priority, head_start) end
  -- Before it leaves its set: if Redis is full and refuses this, nothing has happened.
  if changed ~= record then write_record(id, changed) end
  leave(id, wait)
  place(id, queue, due == '-' and wait.due or due_at(due), head_start_of(changed), is_suspect(id))
  return 'c'
end
