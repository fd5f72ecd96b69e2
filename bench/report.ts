/** Medians, and a table that a person reads. */
export interface Row {
  readonly what: string
  readonly median: number
  readonly unit: string
  /** Each round's figure, in order. */
  readonly rounds: readonly number[]
  readonly bar?: string
  /** Undefined where the row has no bar. */
  readonly met?: boolean
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2
}

export function row(
  what: string,
  unit: string,
  rounds: readonly number[],
  bar?: { text: string; met(median: number): boolean },
): Row {
  const middle = median(rounds)
  const base = { what, unit, rounds, median: middle }
  return bar === undefined ? base : { ...base, bar: bar.text, met: bar.met(middle) }
}

export function printTable(rows: readonly Row[]): string {
  const cells = rows.map(({ what, median: value, unit, rounds, bar, met }) => [
    what,
    `${show(value)} ${unit}`,
    `${show(Math.min(...rounds))} – ${show(Math.max(...rounds))}`,
    bar ?? '',
    met === undefined ? '' : met ? 'met' : 'MISSED',
  ])
  const table = [['what', 'median', 'range', 'bar', ''], ...cells]
  const widths = [0, 1, 2, 3, 4].map((column) => Math.max(...table.map((line) => line[column]?.length ?? 0)))
  return table
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

function show(value: number): string {
  return value >= 1_000 ? Math.round(value).toLocaleString('en') : value.toFixed(2)
}
