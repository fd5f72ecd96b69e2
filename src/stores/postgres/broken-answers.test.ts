/** A function that answers without a row is broken, which no repeat mends: it is not told as an outage. */
import { expect, test } from 'vitest'
import { systemClock } from '../../std/clock.ts'
import { systemRandom } from '../../std/random.ts'
import { newJob, newWorkerId } from '../conformance/support.ts'
import type { Store } from '../store.ts'
import type { Executor } from './executor.ts'
import { readNames } from './names.ts'
import { sqlStore } from './sql-store.ts'

/** A database whose statements all run and return nothing. */
const EMPTY: Executor = {
  open: async () => ({ version: 180_000 }),
  query: async () => [],
  script: async () => undefined,
  transaction: () => Promise.reject(new Error('not asked for')),
  listen: () => Promise.reject(new Error('not asked for')),
  close: async () => undefined,
}

const CALLS: Readonly<Record<string, (store: Store) => Promise<unknown>>> = {
  'a cycle': (store) => store.cycle({ worker: newWorkerId(), settle: [], claim: null }),
  'a heartbeat': (store) => store.heartbeat({ worker: newWorkerId(), undelivered: [] }),
  'a subscription': (store) => store.subscribe(() => undefined),
  'a list of schedules': (store) => store.schedules.list(),
  'a tick': (store) => store.schedules.fire('nightly', 1, null, newJob()),
}

test.each(Object.entries(CALLS))('%s without a row is HF_STORE_CONTRACT', async (_, call) => {
  const store = sqlStore({
    executor: EMPTY,
    names: readNames({}),
    migrate: false,
    clock: systemClock,
    random: systemRandom,
  })
  await expect(call(store)).rejects.toMatchObject({ code: 'HF_STORE_CONTRACT' })
})
