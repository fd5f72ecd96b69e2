/** What is measured, one line a figure. A scenario returns some of them for one contender and one round. */
export interface FigureKind {
  readonly what: string
  readonly unit: string
}

export type FigureKinds<Figure extends string> = Readonly<Record<Figure, FigureKind>>
export type Figures<Figure extends string> = Partial<Record<Figure, number>>

export function entriesOf<Figure extends string>(figures: Figures<Figure>): [Figure, number][] {
  return Object.entries(figures) as [Figure, number][]
}

export const rate = (what: string): FigureKind => ({ what, unit: 'jobs/s' })
export const micros = (what: string): FigureKind => ({ what, unit: 'µs' })
export const millis = (what: string): FigureKind => ({ what, unit: 'ms' })
export const megabytes = (what: string): FigureKind => ({ what, unit: 'MB' })

export const bytes = (what: string): FigureKind => ({ what, unit: 'B' })

/** What a drain is measured by: its rate, and CPU and log a job. */
export type DrainFigure<Name extends string> = Name | `${Name}Server` | `${Name}Client` | `${Name}Log`

export function drainKinds<Name extends string>(
  name: Name,
  what: string,
): Readonly<Record<DrainFigure<Name>, FigureKind>> {
  return {
    [name]: rate(what),
    [`${name}Server`]: micros(`${what}: CPU a job, server`),
    [`${name}Client`]: micros(`${what}: CPU a job, client`),
    [`${name}Log`]: bytes(`${what}: written to the server's log a job`),
  } as Record<DrainFigure<Name>, FigureKind>
}

/** Those of the scenarios that are run on each store, in parts, for the order in the tables. */
export const THROUGHPUT = {
  bulk: rate('bulk enqueue'),
  single: rate('single enqueue, 50 at once'),
  ...drainKinds('drain', 'drain, 1 process'),
  ...drainKinds('drain2', 'drain, 2 processes'),
  ...drainKinds('history', 'drain, history kept, 1 process'),
} as const satisfies Record<string, FigureKind>

export const HISTORY = {
  ...drainKinds('history1k', 'drain, history kept, payloads of 1 KB'),
  ...drainKinds('history8k', 'drain, history kept, payloads of 8 KB'),
} as const satisfies Record<string, FigureKind>

export const ONE_SLOT = { slot1: rate('drain, 1 slot') } as const satisfies Record<string, FigureKind>

export const BACKLOG = {
  ...drainKinds('payload8k', 'drain, payloads of 8 KB'),
  few: micros('CPU a job, 10 k waiting (enqueue and drain)'),
  fewServer: micros('CPU a job, 10 k waiting: server'),
  many: micros('CPU a job, 1 M waiting (enqueue and drain)'),
  manyServer: micros('CPU a job, 1 M waiting: server'),
} as const satisfies Record<string, FigureKind>

export const LATENCY = {
  latencyP50: millis('idle latency p50'),
  latencyP99: millis('idle latency p99'),
} as const satisfies Record<string, FigureKind>

export const WORKER = {
  idleRss: megabytes('idle worker: memory'),
  idleCpu: { what: 'idle worker: CPU', unit: '% of a core' },
  idleServerCpu: { what: 'idle worker: CPU of the server', unit: '% of a core' },
  waiting1: rate('handlers of 5 ms, 20 slots a process, 1 process'),
  waiting2: rate('handlers of 5 ms, 20 slots a process, 2 processes'),
} as const satisfies Record<string, FigureKind>

export type CommonFigure =
  | keyof typeof THROUGHPUT
  | keyof typeof LATENCY
  | keyof typeof BACKLOG
  | keyof typeof WORKER
