/** Locks: which are taken, in which order, and what is looked at again once they are held. */
import assert from 'node:assert/strict'
import type { JobId } from '../../../src/job/ids.ts'
import {
  cancelOne,
  changeJobs,
  COMPLETED,
  DEAD,
  Harness,
  LEASE_MS,
  MINUTE_MS,
  newFlushId,
  newJobId,
  newJobs,
  QUEUE,
  retention,
  SECOND_MS,
  settleRequest,
  uniqueWhile,
  type Held as HeldJob,
} from '../../../src/stores/conformance/support.ts'
import type { JobChange } from '../../../src/stores/store.ts'
import { withDeadline } from '../../../src/std/deadline.ts'
import { systemClock } from '../../../src/std/clock.ts'
import { CLAIM, Held, WAIT_MS, type Crossings } from './held.ts'

export const CANCEL_LEASES = 'a bulk cancel locks leases in order of token'
export const CANCEL_KEYS = 'a bulk cancel locks waiting jobs in order of their keys'
export const CANCEL_FINAL = 'a cancel of a final job locks no lease'
export const REPLAY_KEYS = 'a bulk replay takes keys in their order'
export const REPORT_LEASES = 'a cycle with reports locks leases in order of token'
export const DISCARD_LEASES = 'a bulk discard locks leases in order of token'
export const RESCUE_SKIPS = 'a rescue leaves the leases behind a locked one for the next'
export const IGNORE_WAITS = 'a claim comes after the transaction that was told of a duplicate'
export const BATCH_GOES = 'a batch goes if its history is deleted while its last job is settled'
export const CANCEL_RECHECKS = 'a bulk cancel leaves a job alone that has left the states asked for'
export const CHANGE_RECHECKS =
  'a bulk replay or discard leaves a job alone that has left the states asked for'

const CANCEL: JobChange = { type: 'cancel', reason: null }
const LOCK_LEASE = 'select from holdfast.lease where token = $1 for update'
const LOCK_READY = 'select from holdfast.ready where id = $1 for update'

/** Two jobs, the older one under the later lease, each with another job in its lease. */
async function twoLeases(harness: Harness): Promise<{ late: HeldJob[]; early: HeldJob[] }> {
  await harness.enqueue(newJobs(2, { queue: 'late' }))
  await harness.enqueue(newJobs(2, { queue: 'early' }))
  const worker = await harness.worker()
  const early = await harness.claimAll(worker, { queue: 'early' })
  const late = await harness.claimAll(worker, { queue: 'late' })
  return { late, early }
}

export const LOCK_ORDER: Crossings = {
  async [CANCEL_LEASES](site) {
    const harness = new Harness(site.under)
    const { late, early } = await twoLeases(harness)
    await using other = new Held(site)
    await other.begin(LOCK_LEASE, [early[0]?.token])
    const answer = await other.meets(changeJobs(harness.store, {}, CANCEL, 10, null), () =>
      other.run(`${LOCK_LEASE} nowait`, [late[0]?.token]),
    )
    assert.equal(answer.changed, 4)
  },
  async [REPORT_LEASES](site) {
    const harness = new Harness(site.under)
    const { late, early } = await twoLeases(harness)
    const [reported, settled] = [late[0]!, early[0]!]
    await using other = new Held(site)
    await other.begin(LOCK_LEASE, [settled.token])
    const { worker, token, position } = reported
    const settle = [settleRequest(settled, COMPLETED)]
    const reports = [{ token, position, progress: null, log: [] }]
    const cycle = harness.store.cycle({ worker, settle, claim: null, reports })
    const answer = await other.meets(cycle, () => other.run(`${LOCK_LEASE} nowait`, [token]))
    assert.deepEqual(answer.settled, ['written'])
  },
  async [CANCEL_KEYS](site) {
    const harness = new Harness(site.under)
    const older = await harness.put({ unique: uniqueWhile('ready', 'mail.send k2') })
    const newer = await harness.put({ unique: uniqueWhile('ready', 'mail.send k1') })
    await using other = new Held(site)
    await other.begin(LOCK_READY, [newer.id])
    const answer = await other.meets(changeJobs(harness.store, {}, CANCEL, 10, null), () =>
      other.run(`${LOCK_READY} nowait`, [older.id]),
    )
    assert.equal(answer.changed, 2)
  },
  async [CANCEL_FINAL](site) {
    const harness = new Harness(site.under)
    await harness.enqueue(newJobs(2))
    const [first] = await harness.claimAll(await harness.worker())
    assert.ok(first !== undefined)
    await harness.settled(first, COMPLETED)
    await using other = new Held(site)
    await other.begin(LOCK_LEASE, [first.token])
    const cancel = cancelOne(harness.store, first.job.id, null)
    assert.equal(
      await withDeadline(systemClock, WAIT_MS, cancel, () => new Error('the cancel waits')),
      'final',
    )
  },
  async [REPLAY_KEYS](site) {
    const harness = new Harness(site.under)
    await harness.finished(DEAD, { unique: uniqueWhile('unfinished', 'mail.send k2') })
    await harness.finished(DEAD, { unique: uniqueWhile('unfinished', 'mail.send k1') })
    const takeKey = 'select holdfast.take_key($1, $2, 0)'
    await using other = new Held(site)
    await other.begin(takeKey, ['mail.send k1', newJobId()])
    await other.run(`set local lock_timeout = '300ms'`, [])
    const answer = await other.meets(changeJobs(harness.store, {}, { type: 'replay' }, 10, null), () =>
      other.run(takeKey, ['mail.send k2', newJobId()]),
    )
    assert.deepEqual({ changed: answer.changed, skipped: answer.skipped }, { changed: 0, skipped: 2 })
  },
  async [DISCARD_LEASES](site) {
    const harness = new Harness(site.under)
    const { late, early } = await twoLeases(harness)
    for (const held of [late[0], early[0]]) await harness.settled(held!, COMPLETED)
    await using other = new Held(site)
    await other.begin(LOCK_LEASE, [early[0]?.token])
    const filter = { states: ['completed'] as const }
    const answer = await other.meets(changeJobs(harness.store, filter, { type: 'discard' }, 10, null), () =>
      other.run(`${LOCK_LEASE} nowait`, [late[0]?.token]),
    )
    assert.equal(answer.changed, 2)
  },
  async [RESCUE_SKIPS](site) {
    const harness = new Harness(site.under)
    await harness.enqueue(newJobs(3))
    const lost = await harness.worker(LEASE_MS, 1)
    const first = await harness.claimOne(lost)
    const second = await harness.claimOne(lost)
    const elsewhere = await harness.claimOne(await harness.worker(LEASE_MS, 1))
    await using other = new Held(site)
    await other.begin(LOCK_LEASE, [first.token])
    await harness.advance(LEASE_MS + SECOND_MS)
    const destinations = async (): Promise<[JobId, string][]> =>
      (await harness.rescue()).jobs.map(({ id, to }) => [id, to])
    assert.deepEqual(await destinations(), [[elsewhere.job.id, 'scheduled']])
    await other.commit()
    assert.deepEqual(await destinations(), [
      [first.job.id, 'scheduled'],
      [second.job.id, 'ready'],
    ])
  },
  async [IGNORE_WAITS](site) {
    const harness = new Harness(site.under)
    const { id, unique } = await harness.put({ unique: uniqueWhile('ready') })
    const job = { id: newJobId(), queue: QUEUE, key: unique?.key, hold: -1, on_conflict: 'ignore' }
    await using other = new Held(site)
    await other.begin('select holdfast.enqueue_unique($1, $2)', [newFlushId(), JSON.stringify([job])])
    assert.deepEqual(await harness.claim(await harness.worker()), [])
    await other.commit()
    await harness.inState(id, 'ready')
  },
  async [BATCH_GOES](site) {
    const harness = new Harness(site.under)
    await harness.enqueue(newJobs(2))
    const worker = await harness.worker()
    const [first] = await harness.claimAll(worker)
    assert.ok(first !== undefined)
    await harness.settled(first, COMPLETED)
    await using other = new Held(site)
    await other.begin(
      `select holdfast.settle($1, array[$2::bigint], '{01}', '{retry}', '{60000}', '{1}', '{{}}', null, null, false)`,
      [worker, first.token],
    )
    await other.holdsUp(harness.store.upkeep.prune(retention({ maxCompleted: 0 }), 100))
    const [row] = await other.read('select count(*)::integer as n from holdfast.batch where token = $1', [
      first.token,
    ])
    assert.deepEqual(row, { n: 0 })
  },
  async [CANCEL_RECHECKS](site) {
    const harness = new Harness(site.under)
    const later = await harness.put({ due: { inMs: MINUTE_MS } })
    await using promote = new Held(site)
    await promote.begin('update holdfast.scheduled set due_at = 0 where id = $1', [later.id])
    const none = { changed: 0, skipped: 0 }
    const first = await promote.meets(
      changeJobs(harness.store, { states: ['scheduled'] }, CANCEL, 10, null),
      () => promote.run('select from holdfast.promote(10)', []),
    )
    assert.deepEqual({ changed: first.changed, skipped: first.skipped }, none)
    await harness.inState(later.id, 'ready')
    await using claim = new Held(site)
    await claim.begin(LOCK_READY, [later.id])
    const worker = await harness.worker()
    const second = await claim.meets(changeJobs(harness.store, { states: ['ready'] }, CANCEL, 10, null), () =>
      claim.run(CLAIM, [worker, QUEUE]),
    )
    assert.deepEqual({ changed: second.changed, skipped: second.skipped }, none)
    assert.equal((await harness.inState(later.id, 'running')).cancelRequested, false)
  },
  async [CHANGE_RECHECKS](site) {
    const harness = new Harness(site.under)
    const packed = await harness.finished(COMPLETED)
    const dead = await harness.finished(DEAD)
    const waiting = await harness.put()
    await cancelOne(harness.store, waiting.id, null)
    await using other = new Held(site)
    const change = 'select holdfast.change($1, $2, $3, null, null) as outcomes'
    const ids = [packed.id, dead.id, waiting.id]
    await other.begin('select', [])
    for (const [states, action, outcomes] of [
      ['{scheduled}', 'discard', { discarded: 0 }],
      ['{completed,cancelled}', 'replay', {}],
      ['{completed}', 'discard', { discarded: 1 }],
      ['{cancelled}', 'discard', { discarded: 1 }],
      ['{dead}', 'discard', { discarded: 1 }],
    ] as const)
      assert.deepEqual(await other.read(change, [ids, states, action]), [{ outcomes }], `${action} ${states}`)
  },
}
