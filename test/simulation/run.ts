/** One run of the simulation from its seed. */
import { seededRandom } from '../../src/std/random.ts'
import { storeOn } from '../../src/stores/memory/memory-store.ts'
import { MemoryState } from '../../src/stores/memory/state.ts'
import type { Store } from '../../src/stores/store.ts'
import type { HistoryEvent, SnapshotJob, State } from '../checker/history.ts'
import { handingStore } from './handing-store.ts'
import { Fleet } from './fleet.ts'
import { Network } from './network.ts'
import { drawPlan, type RunPlan } from './plan.ts'
import { EPOCH_MS } from './process.ts'
import { Recorder } from './recorder.ts'
import { startWeather } from './weather.ts'
import { World } from './world.ts'

export interface RunOptions {
  readonly seed: number
  /** How long the run lasts, in simulated time. */
  readonly minutes: number
  /** Takes each event as it happens. */
  readonly sink: (event: HistoryEvent, plan: RunPlan) => void
}

export interface RunSummary {
  readonly plan: RunPlan
  readonly simulatedMs: number
  /** Timers that fired and messages that arrived. */
  readonly events: number
  /** What was written into the history. */
  readonly recorded: number
}

export async function simulate({ seed, minutes, sink }: RunOptions): Promise<RunSummary> {
  const world = new World(seed)
  const plan = drawPlan(seed, world.random, minutes)
  const recorder = new Recorder(world, (event) => sink(event, plan))
  const state = new MemoryState({
    clock: { now: () => EPOCH_MS + world.nowMs },
    random: seededRandom(world.random.uint32()),
    maxFinished: 1_000_000,
    onMove: (entry, from, to) => recorder.onMove(entry, from, to),
  })
  recorder.watch(state)
  const memory = storeOn(state)
  const store = plan.handsOver ? handingStore(memory, () => EPOCH_MS + world.nowMs) : memory
  const network = new Network(world, recorder, Math.min(3_000, plan.leaseMs / 3))
  const fleet = new Fleet({ world, plan, store, network, recorder })
  recorder.write({ type: 'begin', version: 1, store: 'memory', moves: true, seed: String(seed) })
  fleet.start()
  startWeather({ world, plan, store, network, recorder, fleet })
  await world.runUntil(plan.durationMs)
  // Not waited for: a stop that never ends is what the checker is to find.
  void fleet.stopAll()
  await world.runUntil(plan.durationMs + plan.graceMs + 60_000)
  recorder.write({ type: 'phase', phase: 'end' })
  recorder.write(await snapshot(store))
  return { plan, simulatedMs: world.nowMs, events: world.happened, recorded: recorder.events }
}

async function snapshot(store: Store) {
  const jobs: SnapshotJob[] = []
  let after = null
  do {
    const page: Awaited<ReturnType<Store['admin']['list']>> = await store.admin.list({ limit: 1_000, after })
    for (const job of page.jobs) {
      const { id, queue, state, attempt, crashes } = job
      const running = job.state === 'running' ? job : null
      jobs.push({
        id,
        queue,
        state,
        attempt,
        crashes,
        token: running?.token ?? null,
        worker: running?.worker ?? null,
      })
    }
    after = page.next
  } while (after !== null)
  const counters = Object.fromEntries(
    (await store.admin.queues()).map(({ queue, counts }): [string, Record<State, number>] => [
      queue,
      { ...counts },
    ]),
  )
  return { type: 'snapshot' as const, jobs, counters }
}
