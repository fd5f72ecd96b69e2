/** The demo's jobs: each shows one thing that happens to jobs in production. */
import { DependencyDown, Fatal } from '../../errors.ts'
import { holdfast, type Holdfast } from '../../holdfast.ts'
import { sleep, type Clock } from '../../std/clock.ts'
import type { Random } from '../../std/random.ts'
import type { Io } from '../io.ts'

export interface DemoWorld {
  readonly clock: Clock
  readonly random: Random
}

export const DEMO_QUEUES = { payments: {}, mail: {}, media: {}, office: {} } as const

export type DemoQueue = keyof typeof DEMO_QUEUES

/** One kind of job for the producer to pick; a higher weight is picked more often. */
export interface Recipe {
  readonly weight: number
  enqueue(): Promise<unknown>
}

/** The demo's CRM is down for 6 seconds out of every 25, starting at the 12th. */
const OUTAGE = { everyMs: 25_000, fromMs: 12_000, forMs: 6_000 }

export function demoHoldfast(io: Pick<Io, 'env'>): {
  readonly hf: Holdfast<DemoQueue, object>
  readonly store: string
} {
  const named = io.env['HOLDFAST_STORE']
  const store = named || 'file:.holdfast'
  const hf = holdfast({ store, queues: DEMO_QUEUES, logger: false, timeout: '1m' })
  return { hf, store: named ? (named.split(':')[0] ?? named) : 'embedded' }
}

export function demoRecipes(hf: Holdfast<DemoQueue, object>, world: DemoWorld): readonly Recipe[] {
  return [...quickJobs(hf, world), ...longJobs(hf, world), ...unluckyJobs(hf, world)]
}

function quickJobs(hf: Holdfast<DemoQueue, object>, world: DemoWorld): Recipe[] {
  const sendWelcome = hf.job({
    name: 'send-welcome',
    queue: 'mail',
    priority: 'high',
    run: ({ signal }) => busy(world, 40, 160, signal),
  })
  const sendReminder = hf.job({
    name: 'send-reminder',
    queue: 'mail',
    priority: 'low',
    run: ({ signal }) => busy(world, 30, 90, signal),
  })
  return [
    { weight: 40, enqueue: () => sendWelcome.enqueue() },
    { weight: 8, enqueue: () => sendReminder.enqueue(undefined, { in: between(world, 3_000, 15_000) }) },
  ]
}

function longJobs(hf: Holdfast<DemoQueue, object>, world: DemoWorld): Recipe[] {
  const resizeImage = hf.job({
    name: 'resize-image',
    queue: 'media',
    run: ({ signal, progress }) => inSteps(world, 4, 90, signal, (step) => progress(step, 4, 'sizes')),
  })
  const importCsv = hf.job({
    name: 'import-csv',
    queue: 'office',
    priority: 'background',
    async run({ signal, progress }) {
      const rows = Math.round(between(world, 30, 60)) * 100
      await inSteps(world, rows / 100, 90, signal, (step) => progress(step * 100, rows, 'rows'))
      return { rows }
    },
  })
  return [
    { weight: 20, enqueue: () => resizeImage.enqueue() },
    { weight: 2, enqueue: () => importCsv.enqueue() },
  ]
}

function unluckyJobs(hf: Holdfast<DemoQueue, object>, world: DemoWorld): Recipe[] {
  const chargeCard = hf.job({
    name: 'charge-card',
    queue: 'payments',
    priority: 'urgent',
    retry: { attempts: 5, delay: '1s' },
    async run({ signal }) {
      await busy(world, 100, 350, signal)
      if (world.random.float() < 0.2) throw new Error('card processor timed out')
    },
  })
  const syncCrm = hf.job({
    name: 'sync-crm',
    queue: 'office',
    async run({ signal }) {
      if (crmIsDown(world)) throw new DependencyDown('The CRM', { retryAfter: '3s' })
      await busy(world, 80, 250, signal)
    },
  })
  const buildReport = hf.job({
    name: 'build-report',
    queue: 'office',
    priority: 'low',
    retry: { attempts: 3, delay: '1s' },
    async run({ signal }) {
      await busy(world, 100, 300, signal)
      if (world.random.float() < 0.3) throw new Fatal('template "q3-sales" does not exist')
      throw new TypeError("Cannot read properties of undefined (reading 'total')")
    },
  })
  return [
    { weight: 16, enqueue: () => chargeCard.enqueue() },
    { weight: 10, enqueue: () => syncCrm.enqueue() },
    { weight: 1, enqueue: () => buildReport.enqueue() },
  ]
}

function crmIsDown({ clock }: DemoWorld): boolean {
  const intoMs = clock.monotonicMs() % OUTAGE.everyMs
  return intoMs >= OUTAGE.fromMs && intoMs < OUTAGE.fromMs + OUTAGE.forMs
}

async function inSteps(
  world: DemoWorld,
  steps: number,
  stepMs: number,
  signal: AbortSignal,
  tell: (step: number) => void,
): Promise<void> {
  for (let step = 1; step <= steps; step++) {
    await busy(world, stepMs * 0.7, stepMs * 1.3, signal)
    tell(step)
  }
}

function busy(world: DemoWorld, leastMs: number, mostMs: number, signal: AbortSignal): Promise<void> {
  return sleep(world.clock, between(world, leastMs, mostMs), signal)
}

function between({ random }: DemoWorld, least: number, most: number): number {
  return least + random.float() * (most - least)
}
