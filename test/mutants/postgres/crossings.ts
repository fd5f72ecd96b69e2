/**
 * Calls that cross inside the database: the test keeps the transaction of one call open, right after its locks, while the
 * store makes the other. The server knows whether the second one waits.
 */
import assert from 'node:assert/strict'
import {
  COMPLETED,
  Harness,
  newFlushId,
  newJob,
  QUEUE,
  uniqueWhile,
} from '../../../src/stores/conformance/support.ts'
import { withDeadline } from '../../../src/std/deadline.ts'
import { systemClock } from '../../../src/std/clock.ts'
import { CLAIM, Held, WAIT_MS, type Crossings, type CrossingSite } from './held.ts'

export const SETTLE_WAITS = 'a settle waits for another one of the same lease'
export const PAUSE_WAITS = 'a pause waits for a claim under way'
export const ENQUEUE_WAITS = 'an enqueue with a key waits for the claim of its holder'
export const CLAIM_PASSES = 'a claim passes over what another one has locked'
export const TOKENS_GROW = 'tokens grow although a crash put their sequence back'
export const LOST_CLAIM = 'a settle of a claim that a crash undid is refused'
export const LOST_BELOW = 'it is refused before the next claim, and although a greater token is there'

const COMPLETE = `select holdfast.cycle($1, $2, '{1}', null, null, '{1}', null, null, null, false, null, null, null, null, null)`

export const CROSSINGS: Crossings = {
  async [SETTLE_WAITS](site) {
    const harness = new Harness(site.under)
    await harness.put()
    const held = await harness.claimOne(await harness.worker())
    await using first = new Held(site)
    await first.begin(COMPLETE, [held.worker, `{${held.token}}`])
    assert.equal(await first.holdsUp(harness.settle(held, COMPLETED)), 'already')
  },
  async [CLAIM_PASSES](site) {
    const harness = new Harness(site.under)
    await harness.put()
    const { id } = await harness.put()
    await using first = new Held(site)
    await first.begin(CLAIM, [await harness.worker(), QUEUE])
    const second = harness.claimOne(await harness.worker())
    const { job } = await withDeadline(systemClock, WAIT_MS, second, () => new Error('the claim waits'))
    assert.equal(job.id, id)
    await first.commit()
  },
  async [PAUSE_WAITS](site) {
    const harness = new Harness(site.under)
    await harness.put()
    await using claim = new Held(site)
    await claim.begin(CLAIM, [await harness.worker(), QUEUE])
    await claim.holdsUp(harness.store.admin.setPaused(QUEUE, true))
  },
  async [ENQUEUE_WAITS](site) {
    const harness = new Harness(site.under)
    const unique = uniqueWhile('ready', 'mail.send race', 'replace')
    await harness.put({ unique })
    await using claim = new Held(site)
    await claim.begin(CLAIM, [await harness.worker(), QUEUE])
    const job = newJob({ unique })
    const enqueued = await claim.holdsUp(harness.store.enqueue({ id: newFlushId(), jobs: [job] }))
    assert.deepEqual(enqueued, [{ id: job.id, outcome: 'inserted' }])
  },
  async [TOKENS_GROW](site) {
    const { before, after } = await claimsAroundCrash(site)
    assert.ok(after.token > before.token, `${after.token} after ${before.token}`)
  },
  async [LOST_CLAIM](site) {
    const { harness, before, after } = await claimsAroundCrash(site)
    assert.equal(await harness.settle(before, COMPLETED), 'lost')
    assert.equal(await harness.settle(after, COMPLETED), 'written')
  },
  async [LOST_BELOW](site) {
    const harness = new Harness(site.under)
    await harness.put()
    await harness.put()
    const worker = await harness.worker()
    const [lost, durable] = [await harness.claimOne(worker), await harness.claimOne(worker)]
    await using server = new Held(site)
    await server.begin('delete from holdfast.lease where token = $1', [lost.token])
    await server.run('delete from holdfast.batch where token = $1', [lost.token])
    await server.run('truncate holdfast.server_up', [])
    await server.commit()
    assert.equal(await harness.settle(lost, COMPLETED), 'lost')
    assert.equal(await harness.settle(durable, COMPLETED), 'written')
    assert.equal(await harness.settle(durable, COMPLETED), 'already')
  },
}

/** As a recovery leaves it that lost the last claim: the job is ready, the sequence is back, and the unlogged table is empty. */
async function claimsAroundCrash(
  site: CrossingSite,
): Promise<{ harness: Harness; before: ClaimedOne; after: ClaimedOne }> {
  const harness = new Harness(site.under)
  await harness.put()
  const worker = await harness.worker()
  const before = await harness.claimOne(worker)
  await using server = new Held(site)
  await server.begin('delete from holdfast.lease where token = $1', [before.token])
  await server.run('delete from holdfast.batch where token = $1', [before.token])
  await server.run('truncate holdfast.server_up', [])
  await server.run(`select setval('holdfast.lease_token', $1, false)`, [before.token])
  await server.commit()
  await harness.put()
  return { harness, before, after: await harness.claimOne(worker) }
}

type ClaimedOne = Awaited<ReturnType<Harness['claimOne']>>
