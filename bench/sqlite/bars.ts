import { NONE, otherBar, ownBar, peerBar, type Bar } from '../contest/bars.ts'
import type { SqliteFigure } from './figures.ts'
import type { SqlitePeer } from './settings.ts'

/** The other build is one of before SQLite, when PGlite was the embedded store. */
export const BARS: readonly Bar<SqliteFigure, SqlitePeer>[] = [
  otherBar('firstFresh', { atMost: 0.15 }),
  otherBar('firstReopened', { atMost: 0.25 }),
  { of: 'memoryFresh', limit: { atMost: 100 } },
  otherBar('memoryFresh', { atMost: 0.3 }),
  otherBar('memoryReopened', NONE),
  otherBar('memoryAfter', { atMost: 0.35 }),
  otherBar('diskAfter', { atMost: 0.25 }),

  otherBar('history1k', { atLeast: 5 }),
  peerBar('history1k', 'plainjob', { atLeast: 3 }),
  otherBar('bulk1k', { atLeast: 0.9 }),
  peerBar('bulk1k', 'plainjob', NONE),
  otherBar('bulk', NONE),
  peerBar('bulk', 'plainjob', NONE),
  ownBar('a durable enqueue vs a bare commit', 'oneByOne', 'bare', { atMost: 2 }),
  ownBar('fsync + 5 ms: 50 at once vs one by one', 'slow50', 'slow1', { atLeast: 20 }),
  otherBar('single', NONE),
  peerBar('single', 'plainjob', NONE),
  otherBar('drain', NONE),
  peerBar('drain', 'plainjob', NONE),
  otherBar('history', NONE),
  peerBar('history', 'plainjob', NONE),
  otherBar('history8k', NONE),
  peerBar('history8k', 'plainjob', NONE),
  otherBar('slot1', NONE),
  peerBar('slot1', 'plainjob', NONE),

  { of: 'latencyP50', limit: { atMost: 3 } },
  { of: 'latencyP99', limit: { atMost: 15 } },
  { of: 'idleCpu', limit: { atMost: 0.3 } },
  ownBar('handlers of 5 ms: 2 processes vs 1', 'waiting2', 'waiting1', { atLeast: 1.9 }),
  ownBar('handlers of 5 ms: 4 processes vs 1', 'waiting4', 'waiting1', { atLeast: 3 }),
  ownBar('no-op handlers: 4 processes vs 1', 'noop4', 'noop1', { atLeast: 0.5 }),
  { of: 'leastShare', limit: { atLeast: 5 } },
]
