-- Uses: jobs, leases.
-- Stores progress and log lines of jobs that the worker still holds; ignores reports of other jobs.
-- ARGV: worker, maximum number of lines per job, then for each report its token, position, progress (JSON or empty), number of
--       lines, lines (JSON).
write_though_full()
local worker, most = ARGV[1], tonumber(ARGV[2])
local at = 3
while at <= #ARGV do
  local lines = tonumber(ARGV[at + 3])
  local lease, position = lease_of(ARGV[at]), tonumber(ARGV[at + 1])
  if lease and lease.worker == worker and is_position(lease, position) and not is_settled(lease, position) then
    local id = id_at(lease, position)
    local past = past_of(id)
    if ARGV[at + 2] ~= '' then past.p = ARGV[at + 2] end
    if lines > 0 then
      local log = past.l or {}
      for line = 1, lines do log[#log + 1] = ARGV[at + 3 + line] end
      past.l = { unpack(log, math.max(1, #log - most + 1)) }
    end
    write_past(id, past)
  end
  at = at + 4 + lines
end
return 1
