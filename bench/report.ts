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

/** Of any number of values: the nearest one that at least `percent` of them do not exceed. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)] ?? Number.NaN
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
  if (rows.length === 0) return ''
  const cells = rows.map(({ what, median: value, unit, rounds, bar, met }) => [
    what,
    `${show(value)} ${unit}`,
    `${show(Math.min(...rounds))} – ${show(Math.max(...rounds))}`,
    bar ?? '',
    met === undefined ? '' : met ? 'met' : 'MISSED',
  ])
  return aligned([['what', 'median', 'range', 'bar', ''], ...cells])
}

export interface Figure {
  readonly what: string
  readonly unit: string
  readonly who: string
  readonly median: number
  readonly rounds: readonly number[]
}

/** A line for each figure, a column for each who: median and range. */
export function printFigures(figures: readonly Figure[]): string {
  const columns = [...new Set(figures.map(({ who }) => who))]
  const lines = [...new Set(figures.map(({ what }) => what))].map((what) => {
    const same = figures.filter((figure) => figure.what === what)
    const cells = columns.map((column) => {
      const figure = same.find(({ who }) => who === column)
      if (figure === undefined) return ''
      const { median: middle, rounds } = figure
      const range = rounds.length > 1 ? ` (${show(Math.min(...rounds))} – ${show(Math.max(...rounds))})` : ''
      return `${show(middle)}${range}`
    })
    return [what, same[0]?.unit ?? '', ...cells]
  })
  return aligned([['what', '', ...columns], ...lines])
}

function aligned(table: readonly (readonly string[])[]): string {
  const widths = (table[0] ?? []).map((_, column) =>
    Math.max(...table.map((line) => line[column]?.length ?? 0)),
  )
  return table
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

export function show(value: number): string {
  return value >= 1_000 ? Math.round(value).toLocaleString('en') : value.toFixed(2)
}
