/** What Holdfast promises of its figures: ratios within one round, or limits. */
import { row, type Row } from '../report.ts'
import type { Measured } from './measured.ts'
import { OTHER, type Contender } from './protocol.ts'

type Limit = { readonly atLeast: number } | { readonly atMost: number } | Record<never, never>

/** Shown, not judged. */
export const NONE: Limit = {}

interface Against<Figure extends string, Peer extends string> {
  readonly who: Contender<Peer> | 'the better peer'
  readonly figure: Figure
}

/** A figure of Holdfast against one of a peer, of the better peer, or of its own; or alone. */
export interface Bar<Figure extends string, Peer extends string> {
  readonly what?: string
  readonly of: Figure
  readonly to?: Against<Figure, Peer>
  readonly limit: Limit
}

export function peerBar<Figure extends string, Peer extends string>(
  of: Figure,
  who: Peer,
  limit: Limit,
  figure: Figure = of,
): Bar<Figure, Peer> {
  return { of, to: { who, figure }, limit }
}

export function betterPeerBar<Figure extends string>(of: Figure, limit: Limit): Bar<Figure, never> {
  return { of, to: { who: 'the better peer', figure: of }, limit }
}

export function ownBar<Figure extends string>(
  what: string,
  of: Figure,
  figure: Figure,
  limit: Limit,
): Bar<Figure, never> {
  return { what, of, to: { who: 'holdfast', figure }, limit }
}

/** Against the other build of Holdfast, on the same figure. */
export function otherBar<Figure extends string>(of: Figure, limit: Limit): Bar<Figure, never> {
  return { of, to: { who: OTHER, figure: of }, limit }
}

/** One row for each bar whose figures were measured. */
export function judge<Figure extends string, Peer extends string>(
  bars: readonly Bar<Figure, Peer>[],
  measured: Measured<Figure, Peer>,
): Row[] {
  return bars.flatMap((bar) => {
    const ours = measured.get(bar.of, 'holdfast')
    const theirs = bar.to === undefined ? undefined : against(measured, bar.to)
    if (ours.length === 0 || theirs?.length === 0) return []
    const values = (
      theirs === undefined ? [...ours] : ours.map((value, round) => value / (theirs[round] ?? Number.NaN))
    ).filter(Number.isFinite)
    if (values.length === 0) return []
    const { what, unit } = measured.kinds[bar.of]
    const title = bar.what ?? (bar.to === undefined ? what : `${what} vs ${bar.to.who}`)
    return [limited(title, theirs === undefined ? unit : '×', values, bar.limit)]
  })
}

function against<Figure extends string, Peer extends string>(
  measured: Measured<Figure, Peer>,
  { who, figure }: Against<Figure, Peer>,
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
