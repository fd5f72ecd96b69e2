/** What is measured, one line a figure. A scenario returns some of them for one contender and one round. */
export interface FigureKind {
  readonly what: string
  readonly unit: string
}

const rate = (what: string): FigureKind => ({ what, unit: 'jobs/s' })
const micros = (what: string): FigureKind => ({ what, unit: 'µs' })
const millis = (what: string): FigureKind => ({ what, unit: 'ms' })
const megabytes = (what: string): FigureKind => ({ what, unit: 'MB' })

export const FIGURES = {
  bulk: rate('bulk enqueue'),
  single: rate('single enqueue, 50 at once'),
  drain: rate('drain, 1 process'),
  drainServer: micros('drain, 1 process: CPU a job, server'),
  drainClient: micros('drain, 1 process: CPU a job, client'),
  drain2: rate('drain, 2 processes'),
  drain2Server: micros('drain, 2 processes: CPU a job, server'),
  drain2Client: micros('drain, 2 processes: CPU a job, client'),
  history: rate('drain, history kept, 1 process'),
  historyServer: micros('drain, history kept, 1 process: CPU a job, server'),
  historyClient: micros('drain, history kept, 1 process: CPU a job, client'),
  history2: rate('drain, history kept, 2 processes'),
  latencyP50: millis('idle latency p50'),
  latencyP99: millis('idle latency p99'),
  payload1k: rate('drain, payloads of 1 KB'),
  payload8k: rate('drain, payloads of 8 KB'),
  few: micros('CPU a job, 10 k waiting (enqueue and drain)'),
  fewServer: micros('CPU a job, 10 k waiting: server'),
  many: micros('CPU a job, 1 M waiting (enqueue and drain)'),
  manyServer: micros('CPU a job, 1 M waiting: server'),
  scheduled: micros('CPU a job, 10 k waiting and 1 M scheduled beside'),
  oldFirst: rate('1 M jobs under an old transaction: first tenth'),
  oldLast: rate('1 M jobs under an old transaction: last tenth'),
  oldServer: micros('1 M jobs under an old transaction: CPU a job, server'),
  oldClient: micros('1 M jobs under an old transaction: CPU a job, client'),
  urgentP50: millis('1 M jobs under an old transaction: urgent start p50'),
  urgentP99: millis('1 M jobs under an old transaction: urgent start p99'),
  idleRss: megabytes('idle worker: memory'),
  idleCpu: { what: 'idle worker: CPU', unit: '% of a core' },
  idleServerCpu: { what: 'idle worker: CPU of the server', unit: '% of a core' },
  waiting1: rate('handlers of 5 ms, 20 slots a process, 1 process'),
  waiting2: rate('handlers of 5 ms, 20 slots a process, 2 processes'),
  embedded: rate('drain, embedded, history kept'),
  embeddedServer: rate('drain, server, history kept, for the embedded one'),
  embeddedFirstRss: megabytes('embedded: memory at the first start'),
  embeddedRss: megabytes('embedded: memory once reopened'),
} as const satisfies Record<string, FigureKind>

export type Figure = keyof typeof FIGURES
export type Figures = Partial<Record<Figure, number>>
