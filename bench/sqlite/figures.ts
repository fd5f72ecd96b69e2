import {
  HISTORY,
  LATENCY,
  megabytes,
  micros,
  millis,
  ONE_SLOT,
  rate,
  THROUGHPUT,
  WORKER,
  type FigureKind,
} from '../contest/figures.ts'

const { bulk, single, drain, drainClient, history, historyClient } = THROUGHPUT
const { history1k, history1kClient, history8k, history8kClient } = HISTORY
const { idleRss, idleCpu, waiting1, waiting2 } = WORKER

export const FIGURES = {
  firstFresh: millis('process start to first completed job, fresh'),
  firstReopened: millis('process start to first completed job, reopened'),
  memoryFresh: megabytes('idle memory, fresh'),
  memoryReopened: megabytes('idle memory, reopened'),
  memoryAfter: megabytes('memory after 100,000 jobs'),
  diskAfter: megabytes('disk after 100,000 jobs'),
  bulk,
  bulk1k: rate('bulk enqueue, payloads of 1 KB'),
  oneByOne: micros('enqueue one by one, payloads of 1 KB'),
  bare: micros('a bare commit of SQLite, FULL'),
  single,
  slow1: rate('fsync + 5 ms: enqueue one by one'),
  slow50: rate('fsync + 5 ms: enqueue, 50 at once'),
  drain,
  drainClient,
  history,
  historyClient,
  history1k,
  history1kClient,
  history8k,
  history8kClient,
  ...ONE_SLOT,
  ...LATENCY,
  idleRss,
  idleCpu,
  waiting1,
  waiting2,
  waiting4: rate('handlers of 5 ms, 20 slots a process, 4 processes'),
  noop1: rate('no-op handlers, history kept, 1 process'),
  noop4: rate('no-op handlers, history kept, 4 processes'),
  leastShare: { what: 'no-op handlers, 4 processes: least share of the work', unit: '%' },
} as const satisfies Record<string, FigureKind>

export type SqliteFigure = keyof typeof FIGURES
