/**
 * Runs random commands against a store and the model side by side. A failure is shrunk to the fewest commands that
 * still show it, and its message has the seed that repeats it.
 */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { makeIds } from '../../src/job/ids.ts'
import type { NewJob } from '../../src/job/record.ts'
import { seededRandom, systemRandom } from '../../src/std/random.ts'
import type { StoreUnderTest } from '../../src/stores/conformance/index.ts'
import { adminCommands } from './commands-admin.ts'
import { HALF_MS, MINUTE_MS } from './command.ts'
import { enqueueCommands } from './commands-enqueue.ts'
import { fencingCommands } from './commands-fencing.ts'
import { scheduleCommands } from './commands-schedules.ts'
import { upkeepCommands } from './commands-upkeep.ts'
import { workerCommands } from './commands-worker.ts'
import { compareAll, compareTokens } from './compare.ts'
import { Model, type ModelOptions } from './model.ts'

export interface ModelTestOptions {
  readonly numRuns: number
  /** @default a fresh one, shown on failure */
  readonly seed?: number
  /** @default 200 */
  readonly maxCommands?: number
  /** Whether the store counts the order of starts queue by queue. @default false */
  readonly startsByQueue?: boolean
  /** Whether a failure is reduced to the fewest commands. @default true */
  readonly shrink?: boolean
}

const FIRST_WORKERS = 3
const FIRST_LEASE_MS = 4 * MINUTE_MS + HALF_MS

const COMMANDS = [
  ...enqueueCommands,
  ...workerCommands,
  ...fencingCommands,
  ...upkeepCommands,
  ...adminCommands,
  ...scheduleCommands,
]

/** Rejects with the seed and the shrunk commands if the store and the model differ. */
export async function runModelTest(
  open: () => Promise<StoreUnderTest>,
  options: ModelTestOptions,
): Promise<void> {
  const {
    numRuns,
    seed = systemRandom.uint32() | 0,
    maxCommands = 200,
    startsByQueue = false,
    shrink = true,
  } = options
  const property = fc.asyncProperty(fc.commands(COMMANDS, { maxCommands, size: 'max' }), async (commands) => {
    const under = await open()
    try {
      const model = await start(under, { startsByQueue })
      await fc.asyncModelRun(() => ({ model, real: under }), commands)
      await compareAll(model, under)
      await compareTokens(model, under)
    } finally {
      await under.close()
    }
  })
  const details = await fc.check(property, { numRuns, seed, endOnFailure: !shrink })
  if (!details.failed) return
  const [commands] = details.counterexample ?? []
  throw new Error(
    `The store and its model part after ${details.numRuns} runs, ${details.numShrinks} shrinks.\n` +
      `Repeat with { seed: ${seed} } (path ${details.counterexamplePath}).\nCommands: ${textOf(commands)}`,
    { cause: details.errorInstance },
  )
}

/** Commands write themselves down, those that ran, though their type does not say so. */
function textOf(commands: unknown): string {
  return String(commands)
}

/** The first job tells the store's time, and is the model's first. */
async function start(under: StoreUnderTest, options: ModelOptions): Promise<Model> {
  const ids = makeIds({ now: () => 1 }, seededRandom(1))
  const probe: NewJob = {
    id: ids.job(),
    name: 'probe',
    queue: 'probe',
    payload: 'null',
    priority: 0,
    headStartMs: 0,
    maxAttempts: 1,
    maxCrashes: 0,
    group: null,
    limits: [],
    envelope: { correlationId: null, tags: [], metadata: {}, retry: null, timeoutMs: null },
    due: { inMs: 0 },
    unique: null,
  }
  await under.store.enqueue({ id: ids.flush(), jobs: [probe] })
  const record = await under.store.admin.get(probe.id)
  assert.ok(record !== null, 'a job that was enqueued is in the store')
  const model = new Model(record.createdAt, options)
  model.insert(probe)
  // Most of what can go wrong needs workers, so there are some from the start.
  for (let count = 0; count < FIRST_WORKERS; count++) {
    const id = model.ids.worker()
    const atOnce = count === 0 ? null : count
    await under.store.register(id, FIRST_LEASE_MS, atOnce ?? undefined)
    model.workers.push({
      id,
      leaseMs: FIRST_LEASE_MS,
      expiresAt: model.now + FIRST_LEASE_MS,
      registered: true,
      atOnce,
      rescued: new Map(),
      stopped: false,
    })
  }
  return model
}
