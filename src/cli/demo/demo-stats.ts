/** Listens to events and keeps the figures that the view shows. */
import type { Events } from '../../job/events.ts'
import type { Holdfast } from '../../holdfast.ts'
import type { Clock } from '../../std/clock.ts'
import type { Percentiles, SlotRow, Snapshot, Totals, Trouble } from './snapshot.ts'

/** Rates and percentiles cover this many seconds; sparklines go further back. */
const WINDOW_S = 10
const HISTORY_S = 60
const MAX_TROUBLES = 30

type Counted = 'in' | 'completed' | 'failed'

interface Second {
  readonly at: number
  in: number
  completed: number
  failed: number
  readonly waitMs: number[]
  readonly runMs: number[]
}

type End = Events['job.completed']

interface Slot {
  row: SlotRow
  startedMs: number
}

type Told = Omit<Snapshot, 'store' | 'found' | 'stopping' | 'queues'>

export class DemoStats {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #startedMs: number
  readonly #seconds: Second[] = []
  readonly #slots: (Slot | undefined)[]
  #early: Slot[] = []
  readonly #troubles: Trouble[] = []
  readonly #totals: { -readonly [Name in keyof Totals]: Totals[Name] } = {
    enqueued: 0,
    completed: 0,
    retried: 0,
    parked: 0,
    dead: 0,
    released: 0,
  }

  constructor(clock: Pick<Clock, 'monotonicMs'>, slots: number) {
    this.#clock = clock
    this.#startedMs = clock.monotonicMs()
    this.#slots = Array.from({ length: slots }, () => undefined)
  }

  listenTo<Q extends string>(hf: Pick<Holdfast<Q, object>, 'on'>): void {
    hf.on('job.enqueued', () => {
      this.#totals.enqueued++
      this.#count('in')
    })
    hf.on('job.started', (event) => this.#started(event))
    hf.on('job.progress', (event) => this.#progressed(event))
    hf.on('job.completed', (event) => {
      this.#totals.completed++
      this.#ended(event, 'completed')
      this.#measure(event)
    })
    hf.on('job.failed', (event) => this.#failed(event))
    hf.on('job.snoozed', (event) => this.#parked(event))
    hf.on('job.released', (event) => {
      this.#totals.released++
      this.#ended(event, 'released')
    })
  }

  read(): Told {
    const now = this.#second()
    // The current second is incomplete and would show as a dip: figures cover whole seconds only.
    const full = this.#seconds.filter((second) => second.at < now.at)
    const window = full.filter((second) => second.at >= now.at - WINDOW_S)
    const seconds = Math.max(1, Math.min(WINDOW_S, now.at))
    const completed = sum(window, 'completed')
    const failed = sum(window, 'failed')
    const measured = [...window, now]
    return {
      upMs: this.#upMs(),
      totals: { ...this.#totals },
      perSecond: { in: sum(window, 'in') / seconds, out: completed / seconds },
      failing: completed + failed === 0 ? 0 : failed / (completed + failed),
      completedHistory: history(full, now.at, 'completed'),
      failedHistory: history(full, now.at, 'failed'),
      wait: percentiles(measured.flatMap((second) => second.waitMs)),
      run: percentiles(measured.flatMap((second) => second.runMs)),
      slots: this.#slots.map((slot) => this.#slotRow(slot)),
      troubles: [...this.#troubles],
    }
  }

  #started({ id, job }: Events['job.started']): void {
    const row: SlotRow = { id, job, state: 'running', ms: 0, progress: null }
    const slot: Slot = { row, startedMs: this.#clock.monotonicMs() }
    const free = this.#slots.findIndex((one) => one?.row.state !== 'running')
    // An attempt's end is emitted once it is written, and the next job may have started by then: hold that one back
    // until the end is emitted.
    if (free < 0) this.#early.push(slot)
    else this.#slots[free] = slot
  }

  #progressed({ id, done, total, note }: Events['job.progress']): void {
    const slot = this.#slotOf(id)
    if (slot !== undefined && total !== null)
      slot.row = { ...slot.row, progress: { done, total, note: note ?? '' } }
  }

  #failed(event: Events['job.failed']): void {
    this.#ended(event, 'failed')
    this.#count('failed')
    this.#measure(event)
    if (event.final) this.#totals.dead++
    else this.#totals.retried++
    this.#note(event, event.final ? 'dead' : 'retry', event.retryInMs, event.error.message)
  }

  #parked(event: Events['job.snoozed']): void {
    this.#totals.parked++
    this.#ended(event, 'parked')
    this.#note(event, 'parked', event.delayMs, event.error?.message ?? 'snoozed')
  }

  #ended({ id, durationMs }: End, state: SlotRow['state']): void {
    if (state === 'completed') this.#count('completed')
    const index = this.#slots.findIndex((slot) => slot?.row.id === id && slot.row.state === 'running')
    const slot = this.#slots[index]
    if (slot === undefined) this.#early = this.#early.filter((one) => one.row.id !== id)
    else this.#slots[index] = this.#early.shift() ?? { ...slot, row: { ...slot.row, state, ms: durationMs } }
  }

  #measure({ waitMs, durationMs }: End): void {
    const second = this.#second()
    second.waitMs.push(waitMs)
    second.runMs.push(durationMs)
  }

  #note(event: End, kind: Trouble['kind'], againInMs: number | null, reason: string): void {
    const { job, attempt, maxAttempts } = event
    // An outage parks job after job for the same reason: one line with a count leaves room for other problems.
    const same = (one: Trouble): boolean =>
      kind === 'parked' && one.kind === kind && one.job === job && one.reason === reason
    const index = this.#troubles.findIndex(same)
    const before = index < 0 ? undefined : this.#troubles.splice(index, 1)[0]
    const times = (before?.times ?? 0) + 1
    this.#troubles.unshift({ kind, atMs: this.#upMs(), times, job, attempt, maxAttempts, againInMs, reason })
    this.#troubles.length = Math.min(this.#troubles.length, MAX_TROUBLES)
  }

  #slotOf(id: string): Slot | undefined {
    return [...this.#slots, ...this.#early].find(
      (slot) => slot?.row.id === id && slot.row.state === 'running',
    )
  }

  #slotRow(slot: Slot | undefined): SlotRow | null {
    if (slot === undefined) return null
    if (slot.row.state !== 'running') return slot.row
    return { ...slot.row, ms: this.#clock.monotonicMs() - slot.startedMs }
  }

  #count(what: Counted): void {
    this.#second()[what]++
  }

  #second(): Second {
    const at = Math.floor(this.#upMs() / 1_000)
    const last = this.#seconds.at(-1)
    if (last?.at === at) return last
    const second: Second = { at, in: 0, completed: 0, failed: 0, waitMs: [], runMs: [] }
    this.#seconds.push(second)
    while ((this.#seconds[0]?.at ?? at) < at - HISTORY_S) this.#seconds.shift()
    return second
  }

  #upMs(): number {
    return this.#clock.monotonicMs() - this.#startedMs
  }
}

function sum(seconds: readonly Second[], what: Counted): number {
  return seconds.reduce((total, second) => total + second[what], 0)
}

/** Fills in the seconds without events, which have no record. */
function history(seconds: readonly Second[], now: number, what: Counted): number[] {
  const length = Math.min(now, HISTORY_S)
  const figures = Array.from({ length }, () => 0)
  for (const second of seconds) figures[second.at - (now - length)] = second[what]
  return figures
}

function percentiles(values: readonly number[]): Percentiles | null {
  if (values.length === 0) return null
  const sorted = values.toSorted((a, b) => a - b)
  const at = (share: number): number =>
    sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0
  return { p50: at(0.5), p95: at(0.95) }
}
