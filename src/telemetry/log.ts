/**
 * Events as log lines: `LOG_LINES` gives each event its level and its wording. Payloads and results are in no event, so
 * they are in no log.
 */
import { EVENT_NAMES, LOG_LINES, type Events } from '../job/events.ts'
import { having } from '../job/options.ts'
import type { LogLevel } from '../job/record.ts'
import type { Emitter } from '../std/emitter.ts'

/** The methods of a pino logger that are called; any object with these four works. */
export interface PinoLike {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

const LOGGER = having<PinoLike>('debug', 'info', 'warn', 'error')

export function readLogger(value: unknown, path: string): PinoLike | false {
  return value === false ? false : LOGGER(value, path)
}

type Loggable<Event> = Event & {
  readonly error?: Error | null
  readonly level?: LogLevel
  readonly message?: string
  readonly event?: string
}

/** Writes every event to the logger; returns how to stop. */
export function logEvents(events: Emitter<Events>, logger: PinoLike): () => void {
  const stops = EVENT_NAMES.map((name) => logOne(events, logger, name))
  return () => stops.forEach((stop) => stop())
}

function logOne<Name extends keyof Events>(
  events: Emitter<Events>,
  logger: PinoLike,
  name: Name,
): () => void {
  const { level, text, outcome } = LOG_LINES[name]
  return events.on(name, (event) => {
    const at = typeof level === 'function' ? level(event) : level
    // pino serialises an error under `err`. Level and message have their own place in the line: a second `level` would
    // override the logger's own when the line is parsed, and so would the `event` of a failed listener.
    const { error, level: _level, message: _message, event: of, ...fields } = event as Loggable<Events[Name]>
    const about = of === undefined ? { event: name } : { event: name, of }
    const hasError = error !== undefined && error !== null
    const ended = outcome === undefined ? {} : { outcome: outcome(event) }
    logger[at]({ ...about, ...fields, ...ended, ...(hasError ? { err: error } : {}) }, text(event))
  })
}
