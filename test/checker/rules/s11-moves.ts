/**
 * S11: only legal transitions, each by what may cause it, from the state that the job was in, and never before it is due.
 * The table is the checker's own, so that a mistake in ours is not repeated here.
 */
import type { Job } from '../book.ts'
import type { By, HistoryEvent, MoveEvent, SettlementType, SnapshotEvent, State } from '../history.ts'
import type { Rule } from '../rule.ts'
import type { World } from '../world.ts'

type Ends = readonly [from: readonly (State | null)[], to: readonly (State | null)[]]

const WAITING = ['scheduled', 'blocked', 'ready'] as const
const FINAL = ['completed', 'dead', 'cancelled'] as const

const LEGAL: Readonly<Record<By, Ends>> = {
  enqueue: [[null], WAITING],
  claim: [['ready'], ['running']],
  settle: [['running'], [...WAITING, ...FINAL]],
  rescue: [['running'], [...WAITING, 'dead', 'cancelled']],
  promote: [['scheduled'], ['ready', 'blocked']],
  admit: [
    ['blocked', 'ready'],
    ['ready', 'blocked'],
  ],
  cancel: [WAITING, ['cancelled']],
  replay: [['dead'], ['ready', 'blocked']],
  'release-undelivered': [['running'], ['ready', 'blocked', 'cancelled']],
  replace: [WAITING, WAITING],
  reschedule: [WAITING, WAITING],
  prune: [FINAL, [null]],
  discard: [FINAL, [null]],
}

/** A cancel that was asked for while the job ran wins over whatever would bring it back. */
const SETTLED: Readonly<Record<SettlementType, readonly State[]>> = {
  completed: ['completed'],
  dead: ['dead'],
  cancelled: ['cancelled'],
  retry: [...WAITING, 'cancelled'],
  snooze: [...WAITING, 'cancelled'],
  release: ['ready', 'blocked', 'cancelled'],
}

/** Clocks of stores are finer than a millisecond; what is written down is rounded. */
const ROUNDING_MS = 1

export class LegalMoves implements Rule {
  readonly name = 'S11'
  readonly sees = ['move', 'snapshot'] as const
  readonly #world: World

  constructor(world: World) {
    this.#world = world
  }

  on(event: HistoryEvent): void {
    if (event.type === 'move') {
      this.#judge(event)
      this.#compare(event)
    } else if (event.type === 'snapshot' && this.#world.moves) {
      this.#unmoved(event)
    }
  }

  #judge(event: MoveEvent): void {
    const [from, to] = LEGAL[event.by]
    if (!from.includes(event.from) || !to.includes(event.to)) {
      return this.#illegal(event, `${event.by} took it from ${name(event.from)} to ${name(event.to)}`)
    }
    if (
      event.settlement !== undefined &&
      event.to !== null &&
      !SETTLED[event.settlement].includes(event.to)
    ) {
      return this.#illegal(event, `it was settled as ${event.settlement} and became ${event.to}`)
    }
    const tooEarlyMs = event.dueAt - event.t
    if (event.to === 'ready' && startsWait(event.by) && tooEarlyMs > ROUNDING_MS) {
      this.#illegal(event, `${event.by} made it ready ${tooEarlyMs} ms before it is due`)
    }
  }

  /** Does it start where the move before ended? Where another rule says more of it, that one speaks. */
  #compare(event: MoveEvent): void {
    const { job, finished } = this.#world
    if (event.from === null || finished !== undefined || job === undefined) return
    if (job.state === event.from || job.state === 'dead') return
    if (
      job.state !== null &&
      (event.by === 'settle' || event.by === 'rescue' || event.by === 'release-undelivered')
    )
      return // S4
    if (event.by === 'claim' && job.state === 'running') return // S3
    if (event.to === null) return // S1
    this.#illegal(event, `${event.by} took it from ${event.from}, but it was ${name(job.state)}`)
  }

  #unmoved(event: SnapshotEvent): void {
    for (const { id, state } of event.jobs) {
      const job = this.#world.book.jobs.get(id)
      const was = job === undefined ? this.#world.book.finished.get(id)?.state : job.state
      if (was === undefined || was === state) continue
      const text = `it is ${state}, but the last move on record left it ${name(was)}`
      this.#world.report('S11', id, text, [job?.lastMove ?? null])
    }
  }

  #illegal(event: MoveEvent, text: string): void {
    this.#world.report('S11', event.job, text, [lastOf(this.#world.job), event])
  }

  end(): void {}
}

function startsWait(by: By): boolean {
  return by === 'enqueue' || by === 'promote' || by === 'replace' || by === 'reschedule'
}

function lastOf(job: Job | undefined): MoveEvent | null {
  return job?.lastMove ?? null
}

function name(state: State | null): string {
  return state ?? 'nothing'
}
