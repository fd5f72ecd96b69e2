/**
 * The picture of a snapshot: a pure function to lines that fit the terminal. Every part has its place and its height
 * from the start, so that nothing jumps when figures change.
 */
import { formatDuration } from '../../std/duration.ts'
import { bar, ink, left, right, sparkline, type Line, type Piece, type Style } from './ink.ts'
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
    [ink(' RUNNING', 'dim')],
    ...fixed(
      snapshot.slots.map((slot) => slotLine(slot, columns)),
      room.slots,
    ),
    NOTHING,
    [ink(' RETRIES AND DEAD LETTERS', 'dim')],
    ...fixed(
      snapshot.troubles.map((trouble) => troubleLine(trouble)),
      room.troubles,
    ),
  ]
  if (lines.length < size.rows - 1) lines.push(NOTHING)
  // In a window that is too low for all of it, the footer stays and the rest is cut.
  return [...lines.slice(0, Math.max(0, size.rows - 1)), footer(snapshot)]
}

/** Two blank lines, two headings and the footer. */
const CHROME_ROWS = 5
const MAX_TROUBLES = 12

function shareOut(rows: number, slots: number): { slots: number; troubles: number } {
  const forSlots = Math.max(1, Math.min(slots, rows - 3))
  return { slots: forSlots, troubles: Math.max(1, Math.min(MAX_TROUBLES, rows - forSlots)) }
}

/** Exactly so many lines, with blank ones where there is nothing to tell. */
function fixed(lines: readonly Line[], height: number): Line[] {
  return Array.from({ length: height }, (_, index) => lines[index] ?? NOTHING)
}

function header({ store, upMs, perSecond, slots }: Snapshot): Line {
  const busy = slots.filter((slot) => slot?.state === 'running').length
  return [
    ink(' holdfast demo', 'title'),
    ink(`   ${store} store   up ${clockTime(upMs)}   `),
    ink(`${perSecond.in.toFixed(1)}/s`, 'bold'),
    ink(` enqueued   `),
    ink(`${busy} of ${slots.length}`, 'bold'),
    ink(' slots busy'),
  ]
}

const COLUMNS = ['scheduled', 'ready', 'running', 'completed', 'dead'] as const
const COUNT_WIDTH = 12

function queueTable({ queues }: Snapshot): Line[] {
  const head = [
    ink(` ${left('QUEUE', 14)}`, 'dim'),
    ...COLUMNS.map((name) => ink(right(name, COUNT_WIDTH), 'dim')),
  ]
  const rows = queues.map(({ queue, counts }): Line => [
    ink(` ${left(queue, 14)}`),
    ...COLUMNS.map((state) =>
      ink(right(count(counts[state]), COUNT_WIDTH), countStyle(state, counts[state])),
    ),
  ])
  return [head, ...rows]
}

function countStyle(state: (typeof COLUMNS)[number], value: number): Style {
  if (value === 0) return 'dim'
  if (state === 'dead') return 'bad'
  return state === 'running' ? 'accent' : 'plain'
}

/** Label, figure, sparkline; then the times, so wide apart that both fit into 80 columns. */
function figures(
  { perSecond, failing, completedHistory, failedHistory, wait, run }: Snapshot,
  columns: number,
): Line[] {
  const width = Math.max(8, Math.min(60, columns - 55))
  return [
    [
      ink(` throughput ${right(perSecond.out.toFixed(1), 6)}/s `),
      ink(sparkline(completedHistory, width), 'good'),
      ...times('wait', wait),
    ],
    [
      ink(` failures   ${right((failing * 100).toFixed(1), 6)} % `, failing > 0.1 ? 'warn' : 'plain'),
      ink(sparkline(failedHistory, width), 'warn'),
      ...times('run', run),
    ],
  ]
}

function times(label: string, percentiles: Percentiles | null): Piece[] {
  const figure = (ms: number | undefined): Piece =>
    ink(right(ms === undefined ? '–' : formatDuration(ms), 7), 'bold')
  return [
    ink(`   ${left(label, 4)} p50`, 'dim'),
    figure(percentiles?.p50),
    ink('  p95', 'dim'),
    figure(percentiles?.p95),
  ]
}

const SLOT_MARK: Record<SlotRow['state'], Piece> = {
  running: ink('▸', 'accent'),
  completed: ink('✓', 'good'),
  failed: ink('✖', 'bad'),
  parked: ink('‖', 'warn'),
  released: ink('↩', 'warn'),
}

function slotLine(slot: SlotRow | null, columns: number): Line {
  if (slot === null) return [ink(' · idle', 'dim')]
  const { state, job, id, ms, progress } = slot
  const running = state === 'running'
  // The random end of an id tells two apart; its beginning is only the time.
  const name: Line = [
    ink(' '),
    SLOT_MARK[state],
    ink(` ${left(job, 15)}`, running ? 'bold' : 'dim'),
    ink(` …${id.slice(-6)} `, 'dim'),
  ]
  const time = ink(right(formatDuration(ms), 8), running ? 'plain' : 'dim')
  if (progress === null) return [...name, time]
  const share = progress.total === 0 ? 0 : progress.done / progress.total
  const drawn = bar(share, Math.max(10, Math.min(40, columns - 66)))
  return [
    ...name,
    time,
    ink('  '),
    ink(drawn.done, running ? 'accent' : 'dim'),
    ink(drawn.left, 'dim'),
    ink(right(`${Math.round(share * 100)} %`, 6), running ? 'plain' : 'dim'),
    ink(`  ${count(progress.done)} of ${count(progress.total)} ${progress.note}`, 'dim'),
  ]
}

function troubleLine(trouble: Trouble): Line {
  const { atMs, job, reason } = trouble
  const [mark, style, fate] = fateOf(trouble)
  return [
    ink(` ${right(clockTime(atMs), 5)} `, 'dim'),
    ink(mark, style),
    ink(` ${left(job, 13)} `, 'bold'),
    ink(`${fate}: `, style),
    ink(reason),
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
      return ['↻', 'warn', `attempt ${attempt}/${maxAttempts}, again in ${again}`]
    case 'dead':
      return ['✖', 'bad', `dead after attempt ${attempt}`]
    case 'parked':
      return ['‖', 'accent', times === 1 ? `parked for ${again}` : `parked ${times} times`]
  }
}

function footer({ stopping }: Snapshot): Line {
  return stopping
    ? [ink(' Stopping: running jobs may finish; Ctrl-C again hurries', 'warn')]
    : [ink(' Ctrl-C stops cleanly', 'dim')]
}

/** The same figures on one line, for a pipe. */
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

/** What became of every job: printed when the demo is over. */
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

/** How many jobs still have something to do. */
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
