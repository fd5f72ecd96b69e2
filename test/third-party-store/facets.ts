/** The facets: upkeep, schedules, notes, administration. */
import {
  checkChange,
  checkCursor,
  checkJobs,
  checkNote,
  checkSchedule,
  checkText,
  countOutcomes,
  groupOf,
  isFinal,
  isWaiting,
  JOB_STATES,
  matches,
  mayHaveRun,
  mergeGroups,
  type Admin,
  type ChangeOutcome,
  type FinalState,
  type FlushId,
  type JobChange,
  type JobFilter,
  type JobId,
  type JobState,
  type Notes,
  type QueueStatus,
  type RescuedJob,
  type Retention,
  type Schedules,
  type StoredSchedule,
  type Upkeep,
  type WorkerId,
} from 'holdfast/store'
import type { Book } from './book.ts'
import { enqueue } from './core.ts'
import { byId, recordOf, type Row } from './rows.ts'

/** Runs a step, or rejects if the store is closed. */
export type Step = <T>(body: () => T) => Promise<T>

export function upkeepOf(book: Book, step: Step): Upkeep {
  let leader: { readonly id: WorkerId; readonly until: number } | null = null
  return {
    promote: (limit) =>
      step(() => {
        const scheduled = [...book.rows.values()]
          .filter(({ state }) => state === 'scheduled')
          .sort((a, b) => a.dueAt - b.dueAt)
        const due = scheduled.filter(({ dueAt }) => dueAt <= book.now()).slice(0, limit)
        for (const row of due) book.move(row, 'ready')
        const next = scheduled[due.length]
        return {
          promoted: due.length,
          nextInMs: next === undefined ? null : Math.max(0, next.dueAt - book.now()),
        }
      }),
    rescue: (limit) => step(() => rescue(book, limit)),
    prune: (retention, limit) => step(() => ({ pruned: prune(book, retention, limit) })),
    lead: (candidate, ttlMs) =>
      step(() => {
        if (leader !== null && leader.id !== candidate && leader.until > book.now()) return false
        leader = { id: candidate, until: book.now() + ttlMs }
        return ttlMs > 0
      }),
  }
}

function rescue(book: Book, limit: number): { workers: WorkerId[]; jobs: RescuedJob[] } {
  const jobs: RescuedJob[] = []
  const isGone = (id: WorkerId): boolean => (book.workers.get(id)?.expiresAt ?? -Infinity) <= book.now()
  const orphans = [...book.leases.values()].filter(({ worker }) => isGone(worker))
  for (const lease of orphans) {
    const { worker } = lease
    if (jobs.length >= limit) break
    const known = book.workers.get(worker)
    const atOnce = known?.atOnce ?? null
    const open = book.revoke(lease)
    for (const [before, row] of open.entries()) {
      const { id, name, queue } = row.job
      const { to, crashes, error } = book.crashed(row, lease, mayHaveRun(before, atOnce))
      jobs.push({ id, name, queue, worker, crashes, to, error })
    }
    // The jobs of its later leases stand behind these.
    if (known !== undefined && atOnce !== null) known.atOnce = Math.max(0, atOnce - open.length)
  }
  const workers = [...book.workers.keys()].filter((id) => isGone(id) && book.leasesOf(id).length === 0)
  for (const id of workers) book.workers.delete(id)
  return { workers, jobs }
}

function prune(book: Book, retention: Retention, limit: number): number {
  const { completedMs, deadMs, cancelledMs, maxCompleted, maxDead, maxCancelled } = retention
  const rules: readonly (readonly [FinalState, number, number | null])[] = [
    ['completed', completedMs, maxCompleted],
    ['dead', deadMs, maxDead],
    ['cancelled', cancelledMs, maxCancelled],
  ]
  let pruned = 0
  for (const [state, keepMs, most] of rules) {
    const rows = [...book.rows.values()]
      .filter((row) => row.state === state)
      .sort((a, b) => finishedAt(a) - finishedAt(b) || byId(a, b))
    const surplus = most === null ? 0 : rows.length - most
    for (const [place, row] of rows.entries()) {
      if (pruned >= limit || !(place < surplus || finishedAt(row) + keepMs <= book.now())) break
      book.forget(row)
      pruned++
    }
  }
  return pruned
}

function finishedAt({ end }: Row): number {
  return end?.at ?? 0
}

export function schedulesOf(book: Book, step: Step): Schedules {
  const schedules = new Map<string, StoredSchedule>()
  return {
    put: (id, schedule) =>
      step(() => {
        checkSchedule(id, schedule)
        if (schedule === null) return schedules.delete(id)
        const { spec, nextTick } = schedule
        schedules.set(id, { id, spec, nextTick, lastTick: schedules.get(id)?.lastTick ?? null })
        return true
      }),
    list: () => step(() => ({ now: book.now(), schedules: [...schedules.values()] })),
    fire: (id, tick, nextTick, job) =>
      step(() => {
        const schedule = schedules.get(id)
        if (schedule === undefined) return 'missing'
        const { lastTick } = schedule
        const hasFired =
          lastTick !== null && (tick === lastTick || (tick < lastTick && lastTick <= book.now()))
        if (hasFired) return 'already'
        checkJobs([job])
        schedules.set(id, { ...schedule, nextTick, lastTick: tick })
        enqueue(book, { id: job.id as string as FlushId, jobs: [job] })
        return 'fired'
      }),
  }
}

export function notesOf(book: Book, step: Step): Notes {
  const notes = new Map<string, Map<string, { readonly text: string; readonly until: number }>>()
  const kept = (kind: string): Map<string, { readonly text: string; readonly until: number }> => {
    const all = [...(notes.get(kind) ?? [])].filter(([, { until }]) => until > book.now())
    const left = new Map(all)
    notes.set(kind, left)
    return left
  }
  return {
    put: (kind, id, text, ttlMs) =>
      step(() => {
        checkNote(kind, id, text, ttlMs)
        if (text === null) return kept(kind).delete(id)
        kept(kind).set(id, { text, until: ttlMs === null ? Infinity : book.now() + ttlMs })
        return true
      }),
    list: (kind) =>
      step(() =>
        [...kept(kind)].map(([id, { text }]) => ({ id, text })).sort((a, b) => (a.id < b.id ? -1 : 1)),
      ),
  }
}

export function adminOf(book: Book, step: Step): Admin {
  return {
    get: (id) =>
      step(() => {
        const row = book.rows.get(id)
        return row === undefined ? null : recordOf(row)
      }),
    list: ({ limit, after, ...filter }) =>
      step(() => {
        const { chosen, ...page } = pageOf(book, filter, -1, limit, after)
        return { jobs: chosen.map(recordOf), ...page }
      }),
    queues: () => step(() => [...book.queues.keys()].sort().map((queue) => statusOf(book, queue))),
    setPaused: (queue, paused) =>
      step(() => {
        checkText('The name of a queue', queue)
        book.queues.set(queue, paused)
        book.tell({ type: paused ? 'paused' : 'ready', queue })
      }),
    change: (filter, wanted, limit, after) =>
      step(() => {
        checkChange(wanted)
        const { chosen, ...page } = pageOf(book, filter, 1, limit, after)
        return { outcomes: countOutcomes(chosen.map((row) => change(book, row, wanted))), ...page }
      }),
    deadGroups: (filter, limit, after) =>
      step(() => {
        const states = (filter.states ?? JOB_STATES).filter((state) => state === 'dead')
        const { chosen, ...page } = pageOf(book, { ...filter, states }, 1, limit, after)
        return { groups: mergeGroups(chosen.flatMap((row) => groupOf(recordOf(row)))), ...page }
      }),
  }
}

interface ChosenPage {
  readonly chosen: readonly Row[]
  readonly next: JobId | null
  readonly looked: number
}

/** `order`: 1 for the lowest id first, -1 for the highest. */
function pageOf(
  book: Book,
  filter: JobFilter,
  order: 1 | -1,
  limit: number,
  after: JobId | null,
): ChosenPage {
  checkCursor(after)
  const behind = [...book.rows.values()]
    .sort((a, b) => order * byId(a, b))
    .filter(({ job: { id } }) => after === null || (order === 1 ? id > after : id < after))
  const found = behind.filter((row) => matches(recordOf(row), filter))
  const chosen = found.slice(0, limit)
  const next = found.length > limit ? (chosen.at(-1)?.job.id ?? null) : null
  return { chosen, next, looked: behind.length }
}

function statusOf(book: Book, queue: string): QueueStatus {
  const counts = Object.fromEntries(JOB_STATES.map((state) => [state, 0])) as Record<JobState, number>
  let oldestReadyAt: number | null = null
  for (const { job, state, dueAt } of book.rows.values()) {
    if (job.queue !== queue) continue
    counts[state]++
    if (state === 'ready') oldestReadyAt = Math.min(oldestReadyAt ?? dueAt, dueAt)
  }
  return { queue, paused: book.queues.get(queue) === true, counts, oldestReadyAt }
}

function change(book: Book, row: Row, wanted: JobChange): ChangeOutcome {
  switch (wanted.type) {
    case 'cancel':
      return cancel(book, row, wanted.reason)
    case 'discard':
      if (!isFinal(row.state)) return 'not_final'
      book.forget(row)
      return 'discarded'
    case 'replay':
      return replay(book, row, wanted.payload ?? row.job.payload)
    case 'edit': {
      if (isFinal(row.state)) return 'final'
      if (!isWaiting(row.state)) return 'running'
      const { payload = row.job.payload, rank = {}, due } = wanted
      row.job = { ...row.job, payload, ...rank }
      book.wait(row, due === undefined ? row.dueAt : book.dueAt(due))
      return 'edited'
    }
  }
}

function cancel(book: Book, row: Row, reason: string | null): ChangeOutcome {
  if (isFinal(row.state)) return 'final'
  if (row.lease === null) {
    book.finish(row, 'cancelled', { reason })
    return 'cancelled'
  }
  if (row.cancel?.heard === true) return 'heard'
  row.cancel ??= { reason, heard: false }
  book.tell({ type: 'cancel', worker: row.lease.worker })
  return 'requested'
}

function replay(book: Book, row: Row, payload: string): ChangeOutcome {
  if (row.state !== 'dead') return 'not_dead'
  const { unique, id } = row.job
  if (unique !== null && (book.holderOf(unique.key) ?? id) !== id) return 'key_held'
  row.job = { ...row.job, payload }
  Object.assign(row, { attempt: 0, crashes: 0, end: null })
  book.takeKey(row)
  book.wait(row, book.now())
  return 'replayed'
}
