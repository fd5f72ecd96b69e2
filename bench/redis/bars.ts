import { betterPeerBar, NONE, ownBar, peerBar, type Bar } from '../contest/bars.ts'
import type { RedisFigure } from './figures.ts'
import type { RedisPeer } from './settings.ts'

export const BARS: readonly Bar<RedisFigure, RedisPeer>[] = [
  peerBar('bulk', 'bullmq', { atLeast: 5 }),
  peerBar('bulk', 'bee-queue', { atLeast: 2.2 }),
  peerBar('single', 'bullmq', { atLeast: 3 }),
  peerBar('single', 'bee-queue', { atLeast: 1.3 }),
  peerBar('drain', 'bullmq', { atLeast: 9 }),
  peerBar('drain', 'bee-queue', { atLeast: 3 }),
  peerBar('drainServer', 'bullmq', { atMost: 1 / 8 }),
  peerBar('drainServer', 'bee-queue', NONE),
  peerBar('slot1', 'bullmq', { atLeast: 1.5 }),
  peerBar('slot1', 'bee-queue', { atLeast: 1.5 }),
  peerBar('drain2', 'bullmq', NONE),
  peerBar('drain2', 'bee-queue', NONE),
  peerBar('history', 'bullmq', NONE),
  peerBar('history', 'bee-queue', NONE),
  peerBar('payload8k', 'bullmq', NONE),
  peerBar('payload8k', 'bee-queue', NONE),
  peerBar('latencyP50', 'bullmq', NONE),
  peerBar('latencyP50', 'bee-queue', { atMost: 1.2 }),
  betterPeerBar('latencyP99', NONE),
  peerBar('memory', 'bullmq', { atMost: 0.7 }),
  peerBar('memory', 'bee-queue', NONE),
  peerBar('enqueueAof', 'bullmq', NONE),
  peerBar('enqueueAof', 'bee-queue', NONE),
  peerBar('drainAof', 'bullmq', NONE),
  peerBar('drainAof', 'bee-queue', NONE),
  ownBar('CPU a job, 1 M vs 10 k waiting', 'many', 'few', { atMost: 1.15 }),
  ownBar('handlers of 5 ms: 2 processes vs 1', 'waiting2', 'waiting1', { atLeast: 1.9 }),
  { of: 'idleRss', limit: { atMost: 95 } },
  { of: 'idleCpu', limit: { atMost: 1 } },
]

/** Of 100,000 dead letters, measured by `--features`. */
export const REPLAY_PER_SECOND = 15_000
