-- Uses: jobs, waiting, by_id, final, leases, release, attempts, reports, settle, claim, offers.
-- Keeps reports, settles, then claims: one step. Only the worker of a lease settles its positions, each once. A claim
-- takes the first jobs of a queue that is not paused, for a worker that is registered, and puts them under a token
-- greater than all before. An offer ends the worker's last one before the claim and is open after it, if the claim left
-- room. Nothing is written before the lease was checked. A full Redis refuses no part of it: the first write ends a
-- lease or takes jobs out of a set, which need no memory, or is write_though_full.
-- ARGV: worker, queue (empty: no claim), limit, 1 for a suspect too, the client's counter, offer (JSON; empty: none), number
--       of leases to settle; each lease as settle_lease takes it; then reports as keep_reports takes them, if there are
--       any.
-- Answers: whether the worker is alive, the letters for each lease, for each lease claimed its token, claimedAt, ids in
--       one text, scores in one text, records, pasts (an entry for each id would cost the client 0.25 µs); and since when
--       an offer is open, if one is.
local worker, queue, limit = ARGV[1], ARGV[2], tonumber(ARGV[3])

local refusal, behind = read_settles(8)
local has_reports = not refusal and behind <= #ARGV
if has_reports then refusal = read_reports(behind) end
if refusal then return refused(refusal) end

if has_reports then keep_reports(behind, worker) end
local letters = {}
local at = 8
for index = 1, tonumber(ARGV[7]) do letters[index], at = settle_lease(at, worker) end

local alive = redis.call('HEXISTS', WORKERS, worker)
local leases, offered_at = {}, false
if ARGV[6] ~= '' then close_offer(worker, ARGV[6]) end
if alive == 1 and queue ~= '' then
  leases = claim(worker, queue, limit, ARGV[4] == '1', tonumber(ARGV[5]))
  if ARGV[6] ~= '' then offered_at = open_offer(worker, ARGV[6], leases, limit) end
end
return { alive, letters, leases, offered_at }
