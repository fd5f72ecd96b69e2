import { betterPeerBar, NONE, otherBar, ownBar, peerBar, type Bar } from '../contest/bars.ts'
import type { FreshName, PostgresFigure } from './figures.ts'
import type { PostgresPeer } from './settings.ts'

type PostgresBar = Bar<PostgresFigure, PostgresPeer>

/** A rate that does not fall while tables fill. */
const level = (name: FreshName): PostgresBar =>
  ownBar(`${name}: last third vs first`, `${name}Last`, `${name}First`, { atLeast: 0.95 })

export const BARS: readonly PostgresBar[] = [
  // What a drained job costs the server, against the build that `--against` names.
  otherBar('historyServer', { atMost: 0.5 }),
  otherBar('history1kServer', { atMost: 0.3 }),
  otherBar('drainServer', { atMost: 0.75 }),
  otherBar('history1kLog', { atMost: 0.35 }),
  otherBar('history8kServer', NONE),
  otherBar('historyLog', NONE),
  otherBar('drainLog', NONE),
  otherBar('history', NONE),
  otherBar('history1k', NONE),
  otherBar('history8k', NONE),
  otherBar('drain', NONE),
  otherBar('bulk', NONE),

  peerBar('bulk', 'graphile-worker', { atLeast: 2.1 }),
  peerBar('bulk', 'pg-boss', { atLeast: 2.4 }),
  peerBar('bulk', 'bullmq-pg', NONE),
  peerBar('single', 'graphile-worker', { atLeast: 20 }),
  peerBar('single', 'pg-boss', { atLeast: 20 }),
  peerBar('single', 'bullmq-pg', NONE),

  peerBar('drain', 'graphile-worker', { atLeast: 3 }),
  peerBar('drain', 'pg-boss', { atLeast: 3.5 }),
  peerBar('drain', 'bullmq-pg', { atLeast: 3 }),
  peerBar('drain2', 'graphile-worker', { atLeast: 2.5 }),
  peerBar('drain2', 'pg-boss', { atLeast: 4 }),
  peerBar('drain2', 'bullmq-pg', NONE),
  peerBar('history', 'graphile-worker', { atLeast: 2.5 }),
  peerBar('history', 'pg-boss', { atLeast: 3.2 }),
  peerBar('history', 'bullmq-pg', { atLeast: 3 }),
  peerBar('history2', 'graphile-worker', { atLeast: 2 }),
  peerBar('history2', 'pg-boss', { atLeast: 3 }),
  peerBar('history2', 'bullmq-pg', NONE),
  peerBar('history1k', 'graphile-worker', { atLeast: 2 }),
  peerBar('history1k', 'pg-boss', { atLeast: 2 }),
  peerBar('history1k', 'bullmq-pg', { atLeast: 3 }),
  peerBar('history8k', 'graphile-worker', { atLeast: 1.5 }),
  peerBar('history8k', 'pg-boss', { atLeast: 1.5 }),
  peerBar('history8k', 'bullmq-pg', { atLeast: 3 }),
  peerBar('payload1k', 'graphile-worker', NONE),
  peerBar('payload1k', 'pg-boss', NONE),
  peerBar('payload8k', 'graphile-worker', { atLeast: 1 }),
  peerBar('payload8k', 'pg-boss', NONE),

  // 0.6 if the enqueue hands jobs over to idle workers, as on Redis.
  betterPeerBar('latencyP50', { atMost: 0.8 }),
  betterPeerBar('latencyP99', NONE),

  level('fresh16'),
  level('fresh64'),
  level('fresh256'),
  level('fresh16Analysed'),
  level('fresh64Analysed'),
  level('fresh256Analysed'),
  level('fresh16Used'),
  level('fresh64Used'),
  level('fresh256Used'),
  peerBar('fresh64Rate', 'graphile-worker', { atLeast: 1.5 }),
  peerBar('fresh256Rate', 'graphile-worker', { atLeast: 2 }),
  { of: 'fresh64P99', limit: { atMost: 400 } },
  peerBar('steadyP50', 'graphile-worker', { atMost: 1 }),
  peerBar('steadyP99', 'graphile-worker', { atMost: 1 }),

  // All of them; what is not counted is that a second has no exact number of jobs.
  ownBar('steady: rate, old transaction vs clean', 'pressureSteadyOldRate', 'pressureSteadyCleanRate', {
    atLeast: 0.995,
  }),
  ownBar('steady: p99, old transaction vs clean', 'pressureSteadyOldP99', 'pressureSteadyCleanP99', {
    atMost: 2,
  }),
  ownBar(
    'saturated: rate, old transaction vs clean',
    'pressureSaturatedOldRate',
    'pressureSaturatedCleanRate',
    {
      atLeast: 0.8,
    },
  ),
  ownBar('saturated: the minute after vs clean', 'pressureSaturatedOldAfter', 'pressureSaturatedCleanAfter', {
    atLeast: 0.95,
  }),

  ownBar('CPU a job, 1 M vs 10 k waiting', 'many', 'few', { atMost: 1.15 }),
  ownBar('CPU a job, 1 M scheduled beside vs without', 'scheduled', 'few', NONE),
  ownBar('old transaction: last tenth vs first', 'oldLast', 'oldFirst', { atLeast: 0.7 }),
  { of: 'urgentP99', limit: { atMost: 300 } },
  ownBar('handlers of 5 ms: 2 processes vs 1', 'waiting2', 'waiting1', { atLeast: 1.9 }),
  { of: 'idleRss', limit: { atMost: 88 } },
  { of: 'idleCpu', limit: { atMost: 0.8 } },
]
