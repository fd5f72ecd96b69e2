import {
  BACKLOG,
  bytes,
  LATENCY,
  megabytes,
  ONE_SLOT,
  THROUGHPUT,
  WORKER,
  type FigureKind,
} from '../contest/figures.ts'

export const FIGURES = {
  ...THROUGHPUT,
  ...ONE_SLOT,
  ...LATENCY,
  ...BACKLOG,
  ...WORKER,
  memory: megabytes('memory of 1 M waiting jobs'),
  enqueueAof: bytes('append-only file a job: enqueue'),
  drainAof: bytes('append-only file a job: drain'),
} as const satisfies Record<string, FigureKind>

export type RedisFigure = keyof typeof FIGURES
