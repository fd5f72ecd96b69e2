import {
  BACKLOG,
  LATENCY,
  megabytes,
  micros,
  millis,
  rate,
  THROUGHPUT,
  WORKER,
  type FigureKind,
} from '../contest/figures.ts'

export const FIGURES = {
  ...THROUGHPUT,
  history2: rate('drain, history kept, 2 processes'),
  ...LATENCY,
  payload1k: rate('drain, payloads of 1 KB'),
  ...BACKLOG,
  scheduled: micros('CPU a job, 10 k waiting and 1 M scheduled beside'),
  oldFirst: rate('1 M jobs under an old transaction: first tenth'),
  oldLast: rate('1 M jobs under an old transaction: last tenth'),
  oldServer: micros('1 M jobs under an old transaction: CPU a job, server'),
  oldClient: micros('1 M jobs under an old transaction: CPU a job, client'),
  urgentP50: millis('1 M jobs under an old transaction: urgent start p50'),
  urgentP99: millis('1 M jobs under an old transaction: urgent start p99'),
  ...WORKER,
  embedded: rate('drain, embedded, history kept'),
  embeddedServer: rate('drain, server, history kept, for the embedded one'),
  embeddedFirstRss: megabytes('embedded: memory at the first start'),
  embeddedRss: megabytes('embedded: memory once reopened'),
} as const satisfies Record<string, FigureKind>

export type PostgresFigure = keyof typeof FIGURES
