/**
 * What handlers report while they run: progress and log lines. Each emits an event at once. The store gets them in
 * batches, with the newest progress only, so that a handler may report in a tight loop.
 */
import type { Core } from '../core/core.ts'
import type { InsideCommit } from '../core/inside-commit.ts'
import type { Logger } from '../job/context.ts'
import type { Events } from '../job/events.ts'
import type { JobLogLine, LogLevel, Progress } from '../job/record.ts'
import type { Clock } from '../std/clock.ts'
import type { Emitter } from '../std/emitter.ts'
import { encodeLossy } from '../std/json.ts'
import { cleanText } from '../std/text.ts'
import { MAX_LOG_LINES, type Report } from '../stores/store.ts'
import type { Attempt } from './attempt.ts'

/** Longest wait for a call to the store that takes the reports along. */
const SEND_AFTER_MS = 250
const MAX_MESSAGE_CHARS = 2_000
const FIELD_LIMITS = { maxBytes: 4 * 1024, maxDepth: 8 }

const NOTHING: readonly Report[] = Object.freeze([])

interface Pending {
  progress: Progress | null
  log: JobLogLine[]
}

export class Reporter {
  readonly #clock: Clock
  readonly #events: Emitter<Events>
  /** Handlers also report inside commit(). Listeners are not part of its transaction. */
  readonly #insideCommit: InsideCommit
  /** Called when reports have waited long enough. */
  readonly #onDue: () => void
  #cancelTimer: (() => void) | undefined
  #pending = new Map<Attempt, Pending>()

  constructor({ clock, events, connection }: Core, onDue: () => void) {
    this.#clock = clock
    this.#events = events
    this.#insideCommit = connection.insideCommit
    this.#onDue = onDue
  }

  progress(attempt: Attempt, done: number, total?: number, note?: string): void {
    const progress: Progress = {
      done: finite(done) ?? 0,
      total: finite(total),
      note: note === undefined ? null : cleanText(note, MAX_MESSAGE_CHARS),
    }
    const pending = this.#for(attempt)
    if (pending !== undefined) pending.progress = progress
    if (this.#events.has('job.progress')) this.#emit('job.progress', { ...attempt.facts, ...progress })
  }

  logger(attempt: Attempt): Logger {
    const at =
      (level: LogLevel) =>
      (message: string, fields: Record<string, unknown> = {}): void =>
        this.#log(attempt, level, message, fields)
    return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
  }

  /** All reports since the last time. They are best effort: what the store does not take is not kept. */
  take(): readonly Report[] {
    if (this.#pending.size === 0) return NOTHING
    this.#cancelTimer?.()
    const reports = [...this.#pending].map(([{ token, position }, { progress, log }]): Report => ({
      token,
      position,
      progress,
      log,
    }))
    this.#pending = new Map()
    return reports
  }

  #log(attempt: Attempt, level: LogLevel, message: string, fields: Record<string, unknown>): void {
    const text = cleanText(message, MAX_MESSAGE_CHARS)
    const pending = this.#for(attempt)
    if (pending !== undefined) {
      const { json } = encodeLossy(fields, FIELD_LIMITS)
      const { log } = pending
      log.push({ at: this.#clock.now(), level, message: text, fields: json === '{}' ? null : (json ?? null) })
      if (log.length > MAX_LOG_LINES) log.shift()
    }
    if (this.#events.has('job.log')) this.#emit('job.log', { ...attempt.facts, level, message: text, fields })
  }

  #emit<Name extends 'job.progress' | 'job.log'>(name: Name, event: Events[Name]): void {
    this.#insideCommit.outside(() => this.#events.emit(name, event))
  }

  /** Undefined if the attempt has ended, even if its handler is still running: the store would ignore its reports. */
  #for(attempt: Attempt): Pending | undefined {
    if (attempt.phase !== 'running') return undefined
    let pending = this.#pending.get(attempt)
    if (pending === undefined) {
      pending = { progress: null, log: [] }
      this.#pending.set(attempt, pending)
      if (this.#pending.size === 1)
        this.#insideCommit.outside(() => (this.#cancelTimer = this.#clock.after(SEND_AFTER_MS, this.#onDue)))
    }
    return pending
  }
}

function finite(value: number | undefined): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null
}
