/** What is run: jobs whose payload says how their handler behaves, and clients that enqueue, cancel and replay them. */
import type { JobId } from '../../src/job/ids.ts'
import {
  DependencyDown,
  Fatal,
  holdfast,
  ResourcesExhausted,
  RetryIn,
  type EnqueueOptions,
  type RunContext,
  type Snooze,
} from '../../src/index.ts'
import { Hub } from '../../src/hub.ts'
import { sleep } from '../../src/std/clock.ts'
import type { Random } from '../../src/std/random.ts'
import type { Store } from '../../src/stores/store.ts'
import type { RunPlan } from './plan.ts'
import type { SimulatedProcess } from './process.ts'
import type { Recorder } from './recorder.ts'
import { between, chance, pick } from './world.ts'

/** How many jobs come at once. */
const BURSTS = [1, 1, 1, 1, 5, 20] as const
const BRISK_BURSTS = [1, 1, 1, 20, 100] as const

type Ending = 'ok' | 'error' | 'fatal' | 'retry-in' | 'dependency' | 'exhausted' | 'snooze'

const BRISK_ENDINGS: readonly Ending[] = [
  'error',
  'error',
  'error',
  'fatal',
  'retry-in',
  'dependency',
  'snooze',
]
/** A worker whose jobs exhaust it claims nothing for a while: with crowds of jobs it would never get through them. */
const ENDINGS: readonly Ending[] = [...BRISK_ENDINGS, 'exhausted']

interface Behaviour {
  readonly intent: string
  readonly ms: number
  /** How the first runs end; afterwards all goes well. */
  readonly endings: readonly Ending[]
  /** Whether the handler goes on when it is told to end. */
  readonly deaf: boolean
}

export function simulatedHoldfast(plan: RunPlan, process: SimulatedProcess, store: Store, random: Random) {
  const queues = Object.fromEntries(plan.queues.map((queue) => [queue, {}]))
  const hf = holdfast({
    logger: false,
    queues,
    timeout: plan.storeTimeoutMs,
    keep: { completed: '2m', cancelled: '2m' },
  })
  Hub.of(hf).moveTo({ store, clock: process.clock, random })
  return hf
}

export type SimulatedHoldfast = ReturnType<typeof simulatedHoldfast>

export function defineWork(
  { batch }: RunPlan,
  hf: SimulatedHoldfast,
  process: SimulatedProcess,
  recorder: Recorder,
) {
  const definition = {
    name: 'work',
    input: anything<Behaviour>(),
    retry: { attempts: 3, delay: '1s', maxDelay: '10s', crashes: 50 },
  } as const
  const run = (context: RunContext<Behaviour, object>): Promise<string | Snooze> =>
    work(context, workerOf(hf), process, recorder)
  if (batch === null) return hf.job({ ...definition, run })
  return hf.batchJob({ ...definition, batch, run: ({ jobs }) => Promise.allSettled(jobs.map(run)) })
}

async function work(
  { input, job, fence, signal, snooze, progress }: RunContext<Behaviour, object>,
  worker: string,
  process: SimulatedProcess,
  recorder: Recorder,
): Promise<string | Snooze> {
  const about = { node: process.name, worker, job: job.id, token: Number(fence), attempt: job.attempt }
  recorder.write({ type: 'run', what: 'start', ...about, payload: JSON.stringify(input) })
  try {
    progress(0, 1)
    await sleep(process.clock, input.ms, input.deaf ? undefined : signal)
    return end(endingOf(input, job.attempt, Number(fence)), snooze)
  } finally {
    recorder.write({ type: 'run', what: 'end', ...about })
  }
}

/** Told by the fleet, which starts the workers. */
const workers = new WeakMap<SimulatedHoldfast, () => string>()

export function tellWorkerOf(hf: SimulatedHoldfast, worker: () => string): void {
  workers.set(hf, worker)
}

function workerOf(hf: SimulatedHoldfast): string {
  return workers.get(hf)?.() ?? 'starting'
}

/** An attempt that is handed back comes again under the same number: every second time it goes on to what comes next. */
function endingOf({ endings }: Behaviour, attempt: number, token: number): Ending {
  const ending = endings[attempt - 1] ?? 'ok'
  const handedBack = ending === 'dependency' || ending === 'snooze'
  return handedBack && token % 2 === 0 ? 'ok' : ending
}

function end<S>(ending: Ending, snooze: (delay: '2s') => S): S | string {
  switch (ending) {
    case 'ok':
      return 'done'
    case 'error':
      throw new Error('went wrong')
    case 'fatal':
      throw new Fatal('hopeless')
    case 'retry-in':
      throw new RetryIn('3s')
    case 'dependency':
      throw new DependencyDown('upstream', { retryAfter: '5s' })
    case 'exhausted':
      throw new ResourcesExhausted('no memory')
    case 'snooze':
      return snooze('2s')
  }
}

function drawBehaviour(random: Random, plan: RunPlan, intent: string): Behaviour {
  const length = pick(random, [0, 0, 0, 1, 2, 3])
  const endings = Array.from({ length }, () => pick(random, plan.brisk ? BRISK_ENDINGS : ENDINGS))
  const long = chance(random, plan.brisk ? 0.01 : 0.05)
  const ms = Math.round(long ? between(random, 5_000, 60_000) : between(random, 0, plan.brisk ? 20 : 800))
  return { intent, ms, endings, deaf: chance(random, 0.1) }
}

function drawOptions(random: Random, plan: RunPlan): EnqueueOptions {
  return {
    queue: pick(random, plan.queues),
    priority: pick(random, ['urgent', 'high', 'normal', 'normal', 'low', 'background'] as const),
    timeout: pick(random, ['2s', '30s', '5m'] as const),
    ...(chance(random, 0.3) ? { in: Math.round(between(random, 0, 20_000)) } : {}),
    ...(chance(random, 0.3) ? { unique: drawUnique(random) } : {}),
  }
}

function drawUnique(random: Random): NonNullable<EnqueueOptions['unique']> {
  const key = `key-${Math.floor(random.float() * 5)}`
  const onConflict = pick(random, ['ignore', 'replace', 'reschedule'] as const)
  const hold = pick(random, [{ while: 'ready' }, { while: 'unfinished' }, { for: '20s' }] as const)
  return { key, onConflict, ...hold }
}

/** One client's life: enqueues until all is quiet, and now and then cancels or replays something. */
export class Client {
  readonly #plan: RunPlan
  readonly #process: SimulatedProcess
  readonly #hf: SimulatedHoldfast
  readonly #job: ReturnType<typeof defineWork>
  readonly #random: Random
  #intents = 0
  readonly #recent: string[] = []

  constructor(
    plan: RunPlan,
    process: SimulatedProcess,
    hf: SimulatedHoldfast,
    recorder: Recorder,
    random: Random,
  ) {
    this.#plan = plan
    this.#process = process
    this.#hf = hf
    this.#job = defineWork(plan, hf, process, recorder)
    this.#random = random
  }

  async live(nowMs: () => number): Promise<void> {
    while (nowMs() < this.#plan.quietFromMs) {
      await sleep(this.#process.clock, this.#plan.enqueueEveryMs * 2 * this.#random.float())
      // Nobody waits for one call before making the next; what fails has failed at its deadline.
      void this.#act().catch(() => undefined)
    }
  }

  /** Makes the schedule of the plan, and removes it when all is to become quiet. */
  async keepSchedule(nowMs: () => number): Promise<void> {
    const { schedule, quietFromMs } = this.#plan
    if (schedule === null) return
    const input = { intent: 'tick', ms: 5, endings: [], deaf: false }
    const spec = { every: schedule.everyMs, catchUp: 'all', catchUpLimit: 100_000, input } as const
    await this.#insist(() => this.#job.schedule('tick', spec))
    await sleep(this.#process.clock, quietFromMs - nowMs())
    await this.#insist(() => this.#job.unschedule('tick'))
  }

  async #insist(act: () => Promise<unknown>): Promise<void> {
    for (;;) {
      try {
        await act()
        return
      } catch {
        await sleep(this.#process.clock, 1_000)
      }
    }
  }

  async #act(): Promise<void> {
    const random = this.#random
    const recent = this.#recent.length === 0 ? undefined : pick(random, this.#recent)
    if (recent !== undefined && chance(random, 0.1)) {
      await (await this.#job.get(recent))?.cancel('not needed')
      return
    }
    if (recent !== undefined && chance(random, 0.05)) {
      await Hub.of(this.#hf).core.store.replay({ ids: [recent as JobId] }, null)
      return
    }
    const bursts = this.#plan.brisk ? BRISK_BURSTS : BURSTS
    for (let burst = pick(random, bursts); burst > 0; burst--) void this.#enqueue().catch(() => undefined)
  }

  async #enqueue(): Promise<void> {
    const behaviour = drawBehaviour(this.#random, this.#plan, `${this.#process.name}-${this.#intents++}`)
    const { id } = await this.#job.enqueue(behaviour, drawOptions(this.#random, this.#plan))
    this.#recent.push(id)
    if (this.#recent.length > 50) this.#recent.shift()
  }
}

/** A schema that takes everything: the payloads are ours. */
function anything<T>() {
  return {
    '~standard': {
      version: 1 as const,
      vendor: 'simulation',
      validate: (value: unknown) => ({ value: value as T }),
      types: undefined as unknown as { input: T; output: T },
    },
  }
}
