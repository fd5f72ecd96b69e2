/** The object that a handler gets. Its parts are created when the handler reads them: most handlers use few of them. */
import type { Core } from '../core/core.ts'
import type { JobDefinition } from '../job/definition.ts'
import { readDuration } from '../job/duration.ts'
import type { JobInfo, Logger, RunContext, Snooze } from '../job/context.ts'
import type { Attempt } from './attempt.ts'
import { commitAttempt } from './commit.ts'
import type { Reporter } from './reporter.ts'

export interface ContextParts {
  readonly core: Core
  /** Made when the first handler reports something. */
  readonly reporter: Reporter
}

export class JobContext implements RunContext<unknown, object> {
  readonly input: unknown
  readonly ctx: object
  readonly #parts: ContextParts
  readonly #attempt: Attempt
  readonly #definition: JobDefinition

  constructor(parts: ContextParts, attempt: Attempt, definition: JobDefinition, input: unknown, ctx: object) {
    this.input = input
    this.ctx = ctx
    this.#parts = parts
    this.#attempt = attempt
    this.#definition = definition
  }

  get signal(): AbortSignal {
    return this.#attempt.abort.signal
  }

  get fence(): bigint {
    return BigInt(this.#attempt.token)
  }

  get job(): JobInfo {
    return jobInfo(this.#attempt)
  }

  get log(): Logger {
    return this.#parts.reporter.logger(this.#attempt)
  }

  // Getters, not methods: handlers destructure the object, and the functions must still know their attempt.
  get progress(): RunContext<unknown, object>['progress'] {
    return (done, total, note) => this.#parts.reporter.progress(this.#attempt, done, total, note)
  }

  get commit(): RunContext<unknown, object>['commit'] {
    return (write) => commitAttempt(this.#parts.core, this.#attempt, this.#definition, write)
  }

  get snooze(): (delay: Parameters<RunContext<unknown, object>['snooze']>[0]) => Snooze {
    return (delay) => new SnoozeRequest(readDuration(delay, 'snooze', { orZero: true }))
  }
}

export class SnoozeRequest implements Snooze {
  readonly type = 'snooze'
  readonly delayMs: number

  constructor(delayMs: number) {
    this.delayMs = delayMs
  }
}

export function jobInfo(attempt: Attempt): JobInfo {
  const { id, name, queue, attempt: number, maxAttempts, crashes, createdAt, envelope } = attempt.job
  return {
    id,
    name,
    queue,
    attempt: number,
    maxAttempts,
    crashes,
    enqueuedAt: new Date(createdAt),
    correlationId: attempt.correlationId,
    tags: envelope.tags,
    metadata: envelope.metadata,
  }
}
