/** What the bench asks of a child, and what a child answers. Times are milliseconds of the machine's monotonic clock. */

/** Where a library has other options for latency than for throughput, it gets each where it counts. */
export type Aim = 'throughput' | 'latency'

/** Another build of Holdfast that `--against` names, for example of the commit before. */
export const OTHER = 'holdfast@other'

/** The embedded store with `durability: 'normal'`. */
export const UNSYNCED = 'holdfast@normal'

/** Holdfast as built now, the same set up otherwise, another build of it, or a peer. */
export type Contender<Peer extends string = string> = 'holdfast' | typeof UNSYNCED | typeof OTHER | Peer

export function isHoldfast(contender: Contender): boolean {
  return contender === 'holdfast' || contender === UNSYNCED || contender === OTHER
}

/** What a child is started with. */
export interface ChildConfig {
  readonly contender: Contender
  /** `postgres://…`, `redis://…`, or `file:…` for the embedded store. */
  readonly url: string
  readonly aim: Aim
  /** Whether completed jobs are kept, by those who can choose. */
  readonly history: boolean
  /** For Holdfast: the path of the `index.js` to load. */
  readonly build: string
}

export interface Payload {
  /** When it was sent; set on those whose wait is measured. */
  readonly sentMs?: number
  readonly pad: string
}

/** Five levels, as each contender knows them; the highest goes first. */
export type Level = 0 | 1 | 2 | 3 | 4
export const NORMAL: Level = 2
export const URGENT: Level = 4

/** Of a payload, where the scenario is not about its size. */
export const SMALL_BYTES = 100

export interface Bulk {
  readonly jobs: number
  /** Of each payload, as JSON. */
  readonly bytes: number
  /** In turns of a thousand jobs. */
  readonly levels?: readonly Level[]
  readonly delayMs?: number
}

export interface Work {
  /** Slots, where the scenario is about them; else the contender's own best. */
  readonly concurrency?: number
  /** How long a handler waits. */
  readonly handlerMs?: number
  /** For each thousand jobs that were run, a thousand more. */
  readonly refill?: boolean
  /** Keep so many jobs waiting, enqueued by the process of the worker. */
  readonly keepWaiting?: KeepWaiting
}

export interface KeepWaiting {
  readonly jobs: number
  readonly bytes: number
  /** Measure the wait of every n-th job. */
  readonly sampleEvery: number
}

/** Of the jobs that were sent with a time, since the last look. */
export interface Waits {
  readonly samples: number
  readonly p50Ms: number
  readonly p99Ms: number
}

/** How a process stands at a moment. */
export interface Mark {
  readonly atMs: number
  readonly cpuMicros: number
  readonly rssBytes: number
  /** Handlers started so far. */
  readonly started: number
}

export interface WorkResult {
  readonly started: number
  /** When the worker was told to start. */
  readonly beganMs: number
  /** When the last handler was started. */
  readonly lastMs: number
  /** Of the jobs that were sent with a time. */
  readonly waitsMs: readonly number[]
}

export interface Calls {
  /** Makes schema and queue; safe to call again. */
  open(): void
  /** Returns how long the enqueueing took. */
  enqueueMany(bulk: Bulk): number
  enqueueSingly(what: { readonly jobs: number; readonly bytes: number; readonly atOnce: number }): number
  /** Enqueues one by one, at each of the rates for a second, over and over. */
  startPacing(what: { readonly perSecond: readonly number[]; readonly level: Level }): void
  /** Enqueues at this rate, a few jobs a call, and catches up if it falls behind. */
  startSteady(what: { readonly perSecond: number; readonly bytes: number }): void
  /** Ends either kind of pacing; returns how many were enqueued. */
  stopPacing(): number
  /** Starts a worker and enqueues a job; returns when that was completed. Needs no `open`. */
  runFirstJob(): number
  startWork(work: Work): void
  stopWork(): WorkResult
  /** Forgets what it answers. */
  takeWaits(): Waits
  mark(): Mark
  close(): void
}

export type CallName = keyof Calls
export type Argument<Name extends CallName> = Parameters<Calls[Name]>[0]
export type Answer<Name extends CallName> = ReturnType<Calls[Name]>

export interface Request {
  readonly id: number
  readonly name: CallName
  readonly argument: unknown
}

export type Message =
  | { readonly type: 'answer'; readonly id: number; readonly answer: unknown }
  | { readonly type: 'failed'; readonly id: number; readonly error: string }
  | { readonly type: 'progress'; readonly started: number }
