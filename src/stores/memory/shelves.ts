/**
 * Where the jobs are. Each state has its own shelf, sorted in the order in which jobs leave it, and each job is on one shelf.
 * Only `take` and `put` move a job to another shelf. They refuse illegal moves, keep the counts, and free the unique key of a
 * job whose new state no longer holds it, all in one step.
 */
import {
  isFinal,
  isLegalMove,
  JOB_STATES,
  type FinalState,
  type JobState,
  type StoredState,
} from '../../job/states.ts'
import type { JobId } from '../../job/ids.ts'
import { SortedList } from '../../std/sorted-list.ts'
import { byDueTime, byFinish, byRank, type Entry } from './entry.ts'
import type { UniqueKeys } from './unique-keys.ts'

export interface QueueShelf {
  paused: boolean
  readonly ready: SortedList<Entry>
  /** Ready jobs that have lost a worker. Separate, because they are claimed one at a time. */
  readonly suspects: SortedList<Entry>
  readonly counts: Record<JobState, number>
}

/** Called on each move. `from` is null for a new job, `to` is null for one that is deleted. */
export type OnMove = (entry: Readonly<Entry>, from: StoredState | null, to: StoredState | null) => void

export class Shelves {
  readonly #keys: UniqueKeys
  readonly #onMove: OnMove | undefined
  readonly jobs = new Map<JobId, Entry>()
  readonly queues = new Map<string, QueueShelf>()
  readonly scheduled = new SortedList<Entry>(byDueTime)
  readonly finished: Readonly<Record<FinalState, SortedList<Entry>>> = {
    completed: new SortedList(byFinish),
    dead: new SortedList(byFinish),
    cancelled: new SortedList(byFinish),
  }

  constructor(keys: UniqueKeys, onMove: OnMove | undefined) {
    this.#keys = keys
    this.#onMove = onMove
  }

  queue(name: string): QueueShelf {
    let shelf = this.queues.get(name)
    if (shelf === undefined) {
      shelf = {
        paused: false,
        ready: new SortedList(byRank),
        suspects: new SortedList(byRank),
        counts: noCounts(),
      }
      this.queues.set(name, shelf)
    }
    return shelf
  }

  insert(entry: Entry): void {
    this.jobs.set(entry.job.id, entry)
    this.#shelve(entry)
    this.#onMove?.(entry, null, entry.state)
  }

  /** Takes the job off its shelf, to be changed and put on the next one. */
  take(entry: Entry): void {
    const shelf = this.queue(entry.job.queue)
    shelf.counts[entry.state]--
    this.#shelfOf(entry, shelf)?.delete(entry)
  }

  put(entry: Entry, to: StoredState): void {
    const from = entry.state
    if (!isLegalMove(from, to)) throw new Error(`job ${entry.job.id}: ${from} → ${to} is not a legal move`)
    entry.state = to
    this.#shelve(entry)
    this.#keys.afterMove(entry)
    this.#onMove?.(entry, from, to)
  }

  /** For a claim, which has taken the job from the front of its shelf. */
  moveTakenToRunning(entry: Entry, shelf: QueueShelf): void {
    shelf.counts.ready--
    shelf.counts.running++
    entry.state = 'running'
    this.#keys.afterMove(entry)
    this.#onMove?.(entry, 'ready', 'running')
  }

  forget(entry: Entry): void {
    if (!isFinal(entry.state))
      throw new Error(`job ${entry.job.id} is ${entry.state} and cannot be forgotten`)
    this.take(entry)
    this.#gone(entry)
  }

  /** The same for the job that finished first, without a lookup. */
  forgetOldest(state: FinalState): void {
    const entry = this.finished[state].takeFirst()
    if (entry === undefined) return
    this.queue(entry.job.queue).counts[state]--
    this.#gone(entry)
  }

  #gone(entry: Entry): void {
    this.jobs.delete(entry.job.id)
    this.#onMove?.(entry, entry.state, null)
  }

  #shelve(entry: Entry): void {
    const shelf = this.queue(entry.job.queue)
    shelf.counts[entry.state]++
    this.#shelfOf(entry, shelf)?.add(entry)
  }

  /** Running jobs are found through their lease. */
  #shelfOf(entry: Entry, shelf: QueueShelf): SortedList<Entry> | undefined {
    switch (entry.state) {
      case 'scheduled':
        return this.scheduled
      case 'ready':
        return entry.crashes > 0 ? shelf.suspects : shelf.ready
      case 'running':
        return undefined
      case 'completed':
      case 'dead':
      case 'cancelled':
        return this.finished[entry.state]
    }
  }
}

function noCounts(): Record<JobState, number> {
  return Object.fromEntries(JOB_STATES.map((state) => [state, 0])) as Record<JobState, number>
}
