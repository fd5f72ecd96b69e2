/**
 * The contract of `store.ts` as tests, for every store: ours and those of others. It depends on no test runner; with
 * vitest, for example:
 *
 * ```ts
 * import { storeConformance, withoutTransactions } from 'holdfast/store/conformance'
 * import { describe, test } from 'vitest'
 * import { tinyStore } from './tiny-store.ts'
 *
 * storeConformance({
 *   runner: { describe, test, skip: (name) => test.skip(name) },
 *   async open() {
 *     let now = Date.now()
 *     const store = tinyStore({ now: () => now })
 *     await store.open()
 *     return {
 *       store,
 *       advance: async (ms) => void (now += ms),
 *       close: () => store.close(),
 *     }
 *   },
 *   skip: withoutTransactions,
 * })
 * ```
 */
import { attemptsTopic } from './attempts.ts'
import { cancelTopic } from './cancel.ts'
import { changeTopic } from './change.ts'
import { claimTopic } from './claim.ts'
import { closingTopic } from './closing.ts'
import { commitTopic } from './commit.ts'
import { deadLettersTopic } from './dead-letters.ts'
import { delayedTopic } from './delayed.ts'
import { editTopic } from './edit.ts'
import { enqueueTopic } from './enqueue.ts'
import { fencingTopic } from './fencing.ts'
import { handOverTopic } from './hand-over.ts'
import { leaderTopic } from './leader.ts'
import { leasesTopic } from './leases.ts'
import { listingTopic } from './listing.ts'
import { notesTopic } from './notes.ts'
import { pauseTopic } from './pause.ts'
import { pruneTopic } from './prune.ts'
import { queuesTopic } from './queues.ts'
import { reportsTopic } from './reports.ts'
import { rescueTopic } from './rescue.ts'
import { schedulesTopic } from './schedules.ts'
import { settleTopic } from './settle.ts'
import { subscribeTopic } from './subscribe.ts'
import type { Runner, Topic } from './suite.ts'
import { suspectsTopic } from './suspects.ts'
import { Harness } from './support.ts'
import type { StoreUnderTest } from './subject.ts'
import { uniqueConflictsTopic } from './unique-conflicts.ts'
import { uniqueHoldsTopic } from './unique-holds.ts'
import { valuesTopic } from './values.ts'

export { withoutTransactions } from './commit.ts'
export type { Runner } from './suite.ts'
export type { StoreUnderTest } from './subject.ts'

export interface ConformanceOptions {
  /** A fresh store, empty and opened; called once for each test. */
  readonly open: () => Promise<StoreUnderTest>
  /** Test title → why this store cannot pass it; shown in the skipped test's name. An unknown title is an error. */
  readonly skip?: Readonly<Record<string, string>>
  /** Topics to run, by name. An unknown name is an error. @default all */
  readonly topics?: readonly string[]
  readonly runner: Runner
}

const TOPICS: readonly Topic[] = [
  enqueueTopic,
  claimTopic,
  handOverTopic,
  settleTopic,
  commitTopic,
  fencingTopic,
  leasesTopic,
  rescueTopic,
  suspectsTopic,
  attemptsTopic,
  uniqueHoldsTopic,
  uniqueConflictsTopic,
  delayedTopic,
  pauseTopic,
  cancelTopic,
  listingTopic,
  queuesTopic,
  changeTopic,
  deadLettersTopic,
  editTopic,
  pruneTopic,
  schedulesTopic,
  notesTopic,
  leaderTopic,
  reportsTopic,
  valuesTopic,
  subscribeTopic,
  closingTopic,
]

/** What goes through jobs page by page: run these again with a store that looks at few jobs in a call, if yours can. */
export const PAGED_TOPICS: readonly string[] = [listingTopic, queuesTopic, changeTopic, deadLettersTopic].map(
  ({ name }) => name,
)

export function storeConformance({ open, runner, skip = {}, topics }: ConformanceOptions): void {
  for (const name of topics ?? []) {
    if (!TOPICS.some((topic) => topic.name === name))
      throw new Error(`The store conformance suite has no topic "${name}".`)
  }
  const titles = new Set(TOPICS.flatMap((topic) => Object.keys(topic.tests)))
  for (const title of Object.keys(skip)) {
    if (!titles.has(title)) throw new Error(`The store conformance suite has no test "${title}" to skip.`)
  }
  for (const topic of TOPICS) {
    if (topics?.includes(topic.name) === false) continue
    runner.describe(topic.name, () => {
      for (const [title, body] of Object.entries(topic.tests)) {
        const reason = skip[title]
        if (reason === undefined) runner.test(title, () => runOne(open, body))
        else runner.skip(`${title} (skipped: ${reason})`)
      }
    })
  }
}

async function runOne(open: ConformanceOptions['open'], body: Topic['tests'][string]): Promise<void> {
  const under = await open()
  try {
    await body(new Harness(under))
  } finally {
    await under.close()
  }
}
