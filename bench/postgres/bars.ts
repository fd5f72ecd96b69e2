import { betterPeerBar, NONE, ownBar, peerBar, type Bar } from '../contest/bars.ts'
import type { PostgresFigure } from './figures.ts'
import type { PostgresPeer } from './settings.ts'

export const BARS: readonly Bar<PostgresFigure, PostgresPeer>[] = [
  peerBar('bulk', 'graphile-worker', { atLeast: 2 }),
  peerBar('bulk', 'pg-boss', { atLeast: 3 }),
  peerBar('single', 'graphile-worker', { atLeast: 20 }),
  peerBar('single', 'pg-boss', { atLeast: 20 }),
  peerBar('drain', 'graphile-worker', { atLeast: 2.5 }),
  peerBar('drain', 'pg-boss', { atLeast: 4 }),
  peerBar('drain2', 'graphile-worker', { atLeast: 2.5 }),
  peerBar('drain2', 'pg-boss', { atLeast: 4 }),
  peerBar('history', 'graphile-worker', { atLeast: 2 }, 'drain'),
  peerBar('history', 'pg-boss', { atLeast: 3 }, 'drain'),
  peerBar('history2', 'graphile-worker', { atLeast: 2 }, 'drain2'),
  peerBar('history2', 'pg-boss', { atLeast: 3 }, 'drain2'),
  peerBar('payload1k', 'graphile-worker', NONE),
  peerBar('payload1k', 'pg-boss', NONE),
  peerBar('payload8k', 'graphile-worker', { atLeast: 1 }),
  peerBar('payload8k', 'pg-boss', NONE),
  betterPeerBar('latencyP50', { atMost: 0.8 }),
  betterPeerBar('latencyP99', NONE),
  ownBar('CPU a job, 1 M vs 10 k waiting', 'many', 'few', { atMost: 1.15 }),
  ownBar('CPU a job, 1 M scheduled beside vs without', 'scheduled', 'few', NONE),
  ownBar('old transaction: last tenth vs first', 'oldLast', 'oldFirst', { atLeast: 0.7 }),
  { of: 'urgentP99', limit: { atMost: 300 } },
  ownBar('handlers of 5 ms: 2 processes vs 1', 'waiting2', 'waiting1', { atLeast: 1.9 }),
  { of: 'idleRss', limit: { atMost: 110 } },
  { of: 'idleCpu', limit: { atMost: 1 } },
  ownBar('drain, embedded vs server', 'embedded', 'embeddedServer', { atLeast: 0.5 }),
  { of: 'embeddedRss', limit: { atMost: 450 } },
]
