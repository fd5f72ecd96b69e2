/** Bugs in the SQL of the embedded store: of the kinds that have cost people their jobs, and near misses of our own. */
import { MODEL, type TextMutant } from '../mutant.ts'

export const SQLITE_MUTANTS: readonly TextMutant[] = [
  // ── the fence ──────────────────────────────────────────────────────────────
  {
    name: 'a revoked token is forgotten',
    file: 'leases',
    find: 'insert into holdfast_revoked (token, done) values (?, ?);',
    replace: 'insert into holdfast_revoked (token, done) select ?, ? where false;',
    caughtBy: ['a rescued lease settles nothing while the job waits: completed'],
  },
  {
    name: 'a settled position is not masked',
    file: 'leases',
    find: 'update holdfast_lease set open = ?, done = ? where token = ?;',
    replace: 'update holdfast_lease set open = ?, done = substr(?, 1, 0) where token = ?;',
    caughtBy: ['a position settled before is answered already while its lease goes on'],
  },
  {
    name: 'settled positions are not counted',
    file: 'leases',
    find: 'update holdfast_lease set open = ?, done = ? where token = ?;',
    replace: 'update holdfast_lease set open = open + 0 * ?, done = ? where token = ?;',
    caughtBy: [MODEL],
  },
  {
    name: 'registering again replaces the number of starts',
    file: 'leases',
    find: 'process = excluded.process;',
    replace: 'process = excluded.process, at_once = excluded.at_once;',
    caughtBy: ['registering again leaves the number as it is'],
  },
  {
    name: 'a heartbeat does not renew',
    file: 'leases',
    find: 'set expires_at = ?, at_once = ?, nth = ? where id = ?;',
    replace: 'set expires_at = expires_at + 0 * ?, at_once = ?, nth = ? where id = ?;',
    caughtBy: ['heartbeats keep a worker alive for as long as they come'],
  },
  // ── order ──────────────────────────────────────────────────────────────────
  {
    name: 'a claim does not break ties by id',
    file: 'leases',
    find: 'head = ? order by due, id limit ?;',
    replace: 'head = ? order by due, id desc limit ?;',
    caughtBy: ['jobs of equal rank go by id, whatever order they were written in'],
  },
  {
    name: 'a claim leaves its last job in ready',
    file: 'leases',
    find: '(due, id) <= (?, ?);',
    replace: '(due, id) < (?, ?);',
    caughtBy: ['a claim takes no more than its limit, from the front'],
  },
  {
    name: 'the greatest head start is never looked at',
    file: 'leases',
    find: 'where queue = ? and suspect = ? and head > ?\norder by head, due, id limit 1;',
    replace: 'where queue = ? and suspect = ? and head > ? and head < 60000\norder by head, due, id limit 1;',
    caughtBy: [MODEL],
  },
  {
    name: 'jobs are promoted early',
    file: 'upkeep',
    find: 'where due <= ? order by due, seq limit ?;',
    replace: 'where due <= ? + 3600000 order by due, seq limit ?;',
    caughtBy: [MODEL],
  },
  // ── unique keys ────────────────────────────────────────────────────────────
  {
    name: 'a key is freed by a job that does not hold it',
    file: 'jobs',
    find: 'delete from holdfast_unique_key where key = ? and id = ? and until is null;',
    replace: 'delete from holdfast_unique_key where key = ? and ? is not null and until is null;',
    caughtBy: ['finishing a job does not free a key that another has taken since'],
  },
  {
    name: 'a key that is held for a time is freed at the end of its job',
    file: 'jobs',
    find: 'where key = ? and id = ? and until is null;',
    replace: 'where key = ? and id = ?;',
    caughtBy: ['a key held for a time outlives a job that is completed, until its time is over'],
  },
  {
    name: 'a key is held beyond its time',
    file: 'jobs',
    find: 'where key = ? and (until is null or until > ?);',
    replace: 'where key = ? and (until is null or until > ? - 3600000);',
    caughtBy: ['a key held for a time outlives a job that is completed, until its time is over'],
  },
  // ── what is written ────────────────────────────────────────────────────────
  {
    name: 'a retry does not count its attempt',
    file: 'jobs',
    find: 'update holdfast_job set due = ?, attempt = ?, crashes = ?, sum = ? where seq = ?;',
    replace:
      'update holdfast_job set due = ?, attempt = attempt + 0 * ?, crashes = ?, sum = ? where seq = ?;',
    caughtBy: [MODEL],
  },
  {
    name: 'a job that is scheduled is not counted',
    file: 'jobs',
    find: 'set scheduled = scheduled + ?, ready',
    replace: 'set scheduled = scheduled + 0 * ?, ready',
    caughtBy: ['counts equal a recount, whatever has happened'],
  },
  {
    name: 'the log of a job does not outlast its attempt',
    file: 'jobs',
    find: 'attempts = excluded.attempts, log = excluded.log,',
    replace: 'attempts = excluded.attempts, log = null,',
    caughtBy: [MODEL],
  },
  {
    name: 'the second reason of a cancel wins',
    file: 'leases',
    find: 'values (?, ?, ?, 0) on conflict do nothing;',
    replace: 'values (?, ?, ?, 0) on conflict do update set reason = excluded.reason;',
    caughtBy: ['asking twice to cancel a running job is the same as asking once'],
  },
  {
    name: 'flushes are forgotten at once',
    file: 'upkeep',
    find: 'order by id limit ?) where at < ?);',
    replace: 'order by id limit ?) where at < ? + 600001);',
    caughtBy: [MODEL],
  },
  // ── upkeep ─────────────────────────────────────────────────────────────────
  {
    name: 'whoever comes leads',
    file: 'upkeep',
    find: 'where holdfast_leader.id = excluded.id or holdfast_leader.until <= ?;',
    replace: 'where holdfast_leader.id = excluded.id or holdfast_leader.until <= ? + 3600000;',
    caughtBy: ['a leader that does not renew is succeeded, and then waits its turn'],
  },
  {
    name: 'pruning begins with the newest',
    file: 'upkeep',
    find: 'order by ended.finished, job.id limit ?;',
    replace: 'order by ended.finished desc, job.id desc limit ?;',
    caughtBy: [MODEL],
  },
  {
    name: 'a schedule forgets what it has fired when it is changed',
    file: 'upkeep',
    find: 'set spec = excluded.spec, next_tick = excluded.next_tick;',
    replace: 'set spec = excluded.spec, next_tick = excluded.next_tick, last_tick = null;',
    caughtBy: [MODEL],
  },
  // ── lists ──────────────────────────────────────────────────────────────────
  {
    name: 'a list of few jobs leaves out those that are scheduled',
    file: 'admin',
    find: 'from holdfast_scheduled as scheduled left join holdfast_job as job using (seq);',
    replace: 'from holdfast_scheduled as scheduled left join holdfast_job as job using (seq) where false;',
    caughtBy: ['a list can be narrowed by state, queue, name and id, and by all at once'],
  },
  {
    name: 'a list of few jobs looks at another final state',
    file: 'admin',
    find: 'left join holdfast_job as job using (seq) where ended.state = ?;',
    replace: 'left join holdfast_job as job using (seq) where ended.state > ?;',
    caughtBy: ['a list can be narrowed by state, queue, name and id, and by all at once'],
  },
]
