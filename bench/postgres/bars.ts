/** What Holdfast promises of its figures: ratios within one round, or limits. */
import { row, type Row } from '../report.ts'
import { FIGURES, type Figure } from './figures.ts'
import type { Measured } from './measured.ts'
import type { Contender, Peer } from './settings.ts'

type Limit = { readonly atLeast: number } | { readonly atMost: number } | Record<never, never>

/** A figure of Holdfast against one of a peer, of the better peer, or of its own; or alone. */
interface Bar {
  readonly what?: string
  readonly of: Figure
  readonly to?: { readonly who: Contender | 'the better peer'; readonly figure: Figure }
  readonly limit: Limit
}

const peerBar = (of: Figure, who: Peer, limit: Limit, figure: Figure = of): Bar => ({
  of,
  to: { who, figure },
  limit,
})
const ownBar = (what: string, of: Figure, figure: Figure, limit: Limit): Bar => ({
  what,
  of,
  to: { who: 'holdfast', figure },
  limit,
})

const NONE: Limit = {}

const BARS: readonly Bar[] = [
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
  { of: 'latencyP50', to: { who: 'the better peer', figure: 'latencyP50' }, limit: { atMost: 0.8 } },
  { of: 'latencyP99', to: { who: 'the better peer', figure: 'latencyP99' }, limit: NONE },
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

/** One row for each bar whose figures were measured. */
export function judge(measured: Measured): Row[] {
  return BARS.flatMap((bar) => {
    const ours = measured.get(bar.of, 'holdfast')
    const theirs = bar.to === undefined ? undefined : against(measured, bar.to)
    if (ours.length === 0 || theirs?.length === 0) return []
    const values = (
      theirs === undefined ? [...ours] : ours.map((value, round) => value / (theirs[round] ?? Number.NaN))
    ).filter(Number.isFinite)
    if (values.length === 0) return []
    const { what, unit } = FIGURES[bar.of]
    const title = bar.what ?? (bar.to === undefined ? what : `${what} vs ${bar.to.who}`)
    return [limited(title, theirs === undefined ? unit : '×', values, bar.limit)]
  })
}

function against(
  measured: Measured,
  { who, figure }: { who: Contender | 'the better peer'; figure: Figure },
): readonly number[] {
  if (who !== 'the better peer') return measured.get(figure, who)
  const peers = measured.peers.map((peer) => measured.get(figure, peer)).filter(({ length }) => length > 0)
  const rounds = Math.max(0, ...peers.map(({ length }) => length))
  return Array.from({ length: rounds }, (_, round) =>
    Math.min(...peers.map((values) => values[round] ?? Infinity)),
  )
}

function limited(what: string, unit: string, values: readonly number[], limit: Limit): Row {
  if ('atLeast' in limit) {
    return row(what, unit, values, {
      text: `≥ ${limit.atLeast} ${unit}`,
      met: (median) => median >= limit.atLeast,
    })
  }
  if ('atMost' in limit) {
    return row(what, unit, values, {
      text: `≤ ${limit.atMost} ${unit}`,
      met: (median) => median <= limit.atMost,
    })
  }
  return row(what, unit, values)
}
