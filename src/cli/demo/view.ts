/**
 * Draws a snapshot: a pure function to lines that fit the terminal. Every part has a fixed place and height, so nothing
 * jumps when figures change.
 */
import { formatDuration } from '../../std/duration.ts'
import { bar, styled, left, right, sparkline, type Line, type Piece, type Style } from './styled-text.ts'
import type { Percentiles, SlotRow, Snapshot, Trouble } from './snapshot.ts'

export interface Size {
  readonly columns: number
  readonly rows: number
}

const WIDEST = 120
const NOTHING: Line = []

export function view(snapshot: Snapshot, size: Size): Line[] {
  const columns = Math.min(size.columns, WIDEST)
  const top = [header(snapshot), NOTHING, ...queueTable(snapshot), NOTHING, ...figures(snapshot, columns)]
  const room = shareOut(size.rows - top.length - CHROME_ROWS, snapshot.slots.length)
  const lines = [
    ...top,
    NOTHING,
    [styled(' RUNNING', 'dim')],
    ...fixed(
      snapshot.slots.map((slot) => slotLine(slot, columns)),
      room.slots,
    ),
    NOTHING,
    [styled(' RETRIES AND DEAD LETTERS', 'dim')],
    ...fixed(
      snapshot.troubles.map((trouble) => troubleLine(trouble)),
      room.troubles,
    ),
  ]
  if (lines.length < size.rows - 1) lines.push(NOTHING)
  // If the window is too low, the footer stays and the rest is cut.
  return [...lines.slice(0, Math.max(0, size.rows - 1)), footer(snapshot)]
}

/** Two blank lines, two headings and the footer. */
const CHROME_ROWS = 5
const MAX_TROUBLES = 12

function shareOut(rows: number, slots: number): { slots: number; troubles: number } {
  const forSlots = Math.max(1, Math.min(slots, rows - 3))
  return { slots: forSlots, troubles: Math.max(1, Math.min(MAX_TROUBLES, rows - forSlots)) }
}

/** Exactly `height` lines, padded with blank ones. */
function fixed(lines: readonly Line[], height: number): Line[] {
  return Array.from({ length: height }, (_, index) => lines[index] ?? NOTHING)
}

function header({ store, upMs, perSecond, slots }: Snapshot): Line {
  const busy = slots.filter((slot) => slot?.state === 'running').length
  return [
    styled(' holdfast demo', 'title'),
    styled(`   ${store} store   up ${clockTime(upMs)}   `),
    styled(`${perSecond.in.toFixed(1)}/s`, 'bold'),
    styled(` enqueued   `),
    styled(`${busy} of ${slots.length}`, 'bold'),
    styled(' slots busy'),
  ]
}

const COLUMNS = ['scheduled', 'ready', 'running', 'completed', 'dead'] as const
const COUNT_WIDTH = 12

function queueTable({ queues }: Snapshot): Line[] {
  const head = [
    styled(` ${left('QUEUE', 14)}`, 'dim'),
    ...COLUMNS.map((name) => styled(right(name, COUNT_WIDTH), 'dim')),
  ]
  const rows = queues.map(({ queue, counts }): Line => [
    styled(` ${left(queue, 14)}`),
    ...COLUMNS.map((state) =>
      styled(right(count(counts[state]), COUNT_WIDTH), countStyle(state, counts[state])),
    ),
  ])
  return [head, ...rows]
}

function countStyle(state: (typeof COLUMNS)[number], value: number): Style {
  if (value === 0) return 'dim'
  if (state === 'dead') return 'bad'
  return state === 'running' ? 'accent' : 'plain'
}

/** Label, figure, sparkline, then the times, spaced so that both fit into 80 columns. */
function figures(
  { perSecond, failing, completedHistory, failedHistory, wait, run }: Snapshot,
  columns: number,
): Line[] {
  const width = Math.max(8, Math.min(60, columns - 55))
  return [
    [
      styled(` throughput ${right(perSecond.out.toFixed(1), 6)}/s `),
      styled(sparkline(completedHistory, width), 'good'),
      ...times('wait', wait),
    ],
    [
      styled(` failures   ${right((failing * 100).toFixed(1), 6)} % `, failing > 0.1 ? 'warn' : 'plain'),
      styled(sparkline(failedHistory, width), 'warn'),
      ...times('run', run),
    ],
  ]
}

function times(label: string, percentiles: Percentiles | null): Piece[] {
  const figure = (ms: number | undefined): Piece =>
    styled(right(ms === undefined ? '–' : formatDuration(ms), 7), 'bold')
  return [
    styled(`   ${left(label, 4)} p50`, 'dim'),
    figure(percentiles?.p50),
    styled('  p95', 'dim'),
    figure(percentiles?.p95),
  ]
}

const SLOT_MARK: Record<SlotRow['state'], Piece> = {
  running: styled('▸', 'accent'),
  completed: styled('✓', 'good'),
  failed: styled('✖', 'bad'),
  parked: styled('‖', 'warn'),
  released: styled('↩', 'warn'),
}

function slotLine(slot: SlotRow | null, columns: number): Line {
  if (slot === null) return [styled(' · idle', 'dim')]
  const { state, job, id, ms, progress } = slot
  const running = state === 'running'
  // Show the random end of an id: its beginning is only the time.
  const name: Line = [
    styled(' '),
    SLOT_MARK[state],
    styled(` ${left(job, 15)}`, running ? 'bold' : 'dim'),
    styled(` …${id.slice(-6)} `, 'dim'),
  ]
  const time = styled(right(formatDuration(ms), 8), running ? 'plain' : 'dim')
  if (progress === null) return [...name, time]
  const share = progress.total === 0 ? 0 : progress.done / progress.total
  const drawn = bar(share, Math.max(10, Math.min(40, columns - 66)))
  return [
    ...name,
    time,
    styled('  '),
    styled(drawn.done, running ? 'accent' : 'dim'),
    styled(drawn.left, 'dim'),
    styled(right(`${Math.round(share * 100)} %`, 6), running ? 'plain' : 'dim'),
    styled(`  ${count(progress.done)} of ${count(progress.total)} ${progress.note}`, 'dim'),
  ]
}

function troubleLine(trouble: Trouble): Line {
  const { atMs, job, reason } = trouble
  const [mark, style, fate] = fateOf(trouble)
  return [
    styled(` ${right(clockTime(atMs), 5)} `, 'dim'),
    styled(mark, style),
    styled(` ${left(job, 13)} `, 'bold'),
    styled(`${fate}: `, style),
    styled(reason),
  ]
}

function fateOf({
  kind,
  times,
  attempt,
  maxAttempts,
  againInMs,
}: Trouble): [mark: string, style: Style, fate: string] {
  const again = formatDuration(againInMs ?? 0)
  switch (kind) {
    case 'retry':
      return ['↻', 'warn', `attempt ${attempt}/${maxAttempts}, next in ${again}`]
    case 'dead':
      return ['✖', 'bad', `dead after attempt ${attempt}`]
    case 'parked':
      return ['‖', 'accent', times === 1 ? `parked for ${again}` : `parked ${times} times`]
  }
}

function footer({ stopping }: Snapshot): Line {
  return stopping
    ? [styled(' Stopping: running jobs may finish; Ctrl-C again aborts them', 'warn')]
    : [styled(' Ctrl-C stops cleanly', 'dim')]
}

/** The same figures on one line, for pipes. */
export function plainLine({ upMs, perSecond, failing, queues, wait, run, totals }: Snapshot): string {
  const inState = (state: (typeof COLUMNS)[number]): number =>
    queues.reduce((total, { counts }) => total + counts[state], 0)
  const pair = (percentiles: Percentiles | null): string =>
    percentiles === null ? '–' : `${formatDuration(percentiles.p50)}/${formatDuration(percentiles.p95)}`
  return [
    right(clockTime(upMs), 5),
    `in ${perSecond.in.toFixed(1)}/s`,
    `out ${perSecond.out.toFixed(1)}/s`,
    `failing ${(failing * 100).toFixed(1)}%`,
    ...(['scheduled', 'ready', 'running', 'completed'] as const).map((state) => `${state} ${inState(state)}`),
    `retried ${totals.retried}`,
    `dead ${inState('dead')}`,
    `wait p50/p95 ${pair(wait)}`,
    `run p50/p95 ${pair(run)}`,
  ].join('  ')
}

/** Final count of all jobs, printed when the demo ends. */
export function summary({ upMs, totals, queues, found }: Snapshot): string[] {
  const { enqueued, completed, dead } = totals
  const waiting = unfinished(queues)
  const missing = found + enqueued - completed - dead - waiting
  const verdict = missing === 0 ? 'none lost' : `${missing} not accounted for`
  return [
    `Stopped after ${formatDuration(upMs)}.`,
    `  enqueued ${count(totals.enqueued)}   completed ${count(totals.completed)}   retried ${count(totals.retried)}   ` +
      `parked ${count(totals.parked)}   dead ${count(totals.dead)}   released ${count(totals.released)}`,
    `  ${found === 0 ? '' : `${count(found)} from before + `}${count(enqueued)} enqueued = ` +
      `${count(completed)} completed + ${count(dead)} dead + ${count(waiting)} still waiting: ${verdict}`,
  ]
}

/** Number of unfinished jobs. */
export function unfinished(queues: Snapshot['queues']): number {
  const states = ['scheduled', 'blocked', 'ready', 'running'] as const
  return queues.reduce(
    (total, { counts }) => total + states.reduce((part, state) => part + counts[state], 0),
    0,
  )
}

function clockTime(ms: number): string {
  const seconds = Math.floor(ms / 1_000)
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}

function count(value: number): string {
  return value.toLocaleString('en')
}
