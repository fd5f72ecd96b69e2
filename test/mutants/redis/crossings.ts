/** Calls that cross the two steps of a rescue: it reads what expired workers hold, then writes what becomes of it. */
import assert from 'node:assert/strict'
import type { StoreUnderTest } from '../../../src/stores/conformance/index.ts'
import {
  COMPLETED,
  Harness,
  idsOf,
  LEASE_MS,
  newJobs,
  newWorkerId,
  SECOND_MS,
  type Held,
} from '../../../src/stores/conformance/support.ts'

/** Opens a store that tells of each script before it is sent. */
export type OpenTelling = (onScript: (name: string) => void) => Promise<StoreUnderTest>

/** `cross` is called between the two steps. */
async function rescueWhile<T>(
  open: OpenTelling,
  cross: (harness: Harness, held: readonly Held[]) => Promise<T>,
  judge: (harness: Harness, held: readonly Held[], rescued: readonly string[], answer: T) => Promise<void>,
): Promise<void> {
  let crossing: (() => void) | undefined
  const under = await open((name) => {
    if (name === 'rescue') crossing?.()
  })
  try {
    const harness = new Harness(under)
    await harness.enqueue(newJobs(2))
    const held = await harness.claimAll(await harness.worker())
    await harness.advance(LEASE_MS + SECOND_MS)
    // A script that the server does not know yet is sent twice, and would come too late.
    await harness.cycle(newWorkerId(), [], null)
    await harness.store.heartbeat({ worker: newWorkerId(), undelivered: [] })
    let answer: Promise<T> | undefined
    // Sent before the rescue on the same connection, so that the server sees it first.
    crossing = () => {
      answer = cross(harness, held)
    }
    const { jobs } = await harness.rescue()
    assert.ok(answer !== undefined, 'the rescue had something to write')
    await judge(harness, held, idsOf(jobs), await answer)
  } finally {
    await under.close()
  }
}

export const CROSSINGS: Readonly<Record<string, (open: OpenTelling) => Promise<void>>> = {
  'a settle that crosses a rescue is kept, and the rest is rescued': (open) =>
    rescueWhile(
      open,
      (harness, [first]) => harness.settle(first as Held, COMPLETED),
      async (harness, [first, second], rescued, answer) => {
        assert.equal(answer, 'written')
        assert.deepEqual(rescued, [second?.job.id])
        await harness.inState((first as Held).job.id, 'completed')
      },
    ),
  'a heartbeat that crosses a rescue keeps the lease': (open) =>
    rescueWhile(
      open,
      (harness, [first]) => harness.store.heartbeat({ worker: (first as Held).worker, undelivered: [] }),
      async (harness, [first], rescued, { alive }) => {
        assert.equal(alive, true)
        assert.deepEqual(rescued, [])
        assert.equal(await harness.settle(first as Held, COMPLETED), 'written')
      },
    ),
}
