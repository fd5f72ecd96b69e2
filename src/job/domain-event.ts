/**
 * A domain event on its way: as it is published, as it is stored with the job of each subscriber, and as their handlers get
 * it. Stored is the raw data, so that defaults and coercions apply when a subscriber runs, each by the schema that it knows.
 */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { JobId } from './ids.ts'
import { matches } from './pattern.ts'
import { encodePayload, parseInput, PAYLOAD_LIMITS } from './payload.ts'
import type { Envelope } from './record.ts'
import { show } from './show.ts'

/** What a subscriber's handler gets as its input. */
export interface ReceivedEvent<Name extends string = string, Data = unknown> {
  /** The same for all subscribers, and whenever one of them runs again. */
  readonly id: string
  readonly name: Name
  /** By the clock of whoever published it. */
  readonly publishedAt: Date
  readonly data: Data
}

/** What a subscriber is subscribed to, and by which schemas it reads what comes. */
export interface Interest {
  readonly patterns: readonly string[]
  /** Of the events that it names; what comes by a pattern is left as it was published. */
  readonly schemas: ReadonlyMap<string, StandardSchemaV1 | undefined>
}

/** Ready to be written for whoever subscribes to it. */
export interface PreparedEvent {
  readonly id: JobId
  readonly name: string
  readonly payload: string
  readonly envelope: Envelope
}

export interface EventParts {
  readonly id: JobId
  readonly name: string
  readonly schema: StandardSchemaV1 | undefined
  readonly data: unknown
  readonly nowMs: number
  readonly envelope: Envelope
}

/** A promise only where the event's schema is asynchronous. */
export function prepareEvent(parts: EventParts): PreparedEvent | Promise<PreparedEvent> {
  const checked = parseInput(parts.schema, parts.data, parts.name, 'event')
  return checked instanceof Promise ? checked.then(() => seal(parts)) : seal(parts)
}

function seal({ id, name, data, nowMs, envelope }: EventParts): PreparedEvent {
  const at = new Date(nowMs).toISOString()
  const payload = encodePayload({ id, name, at, data }, name, PAYLOAD_LIMITS, 'event')
  // What one event sets off belongs together, though nothing else had set off the event.
  return { id, name, payload, envelope: { ...envelope, correlationId: envelope.correlationId ?? id } }
}

/** The schema of a subscriber's input: from the event as it is stored to the event as its handler gets it. */
export function eventSchema(interest: Interest): StandardSchemaV1<unknown, ReceivedEvent> {
  return { '~standard': { version: 1, vendor: 'holdfast', validate: (value) => judge(value, interest) } }
}

type Judged = StandardSchemaV1.Result<ReceivedEvent>

function judge(value: unknown, { patterns, schemas }: Interest): Judged | Promise<Judged> {
  const { id, name, at, data } = Object(value) as Record<string, unknown>
  if (typeof id !== 'string') return refused('id', `${show(id)} is not the id of an event`)
  if (typeof name !== 'string' || !patterns.some((pattern) => matches(pattern, name)))
    return refused('name', `${show(name)} is not an event that it is subscribed to`)
  const publishedAt = new Date(typeof at === 'string' ? at : Number.NaN)
  if (Number.isNaN(publishedAt.getTime())) return refused('at', `${show(at)} is not a point in time`)
  const received = (judged: StandardSchemaV1.Result<unknown>): Judged =>
    judged.issues === undefined
      ? { value: { id, name, publishedAt, data: judged.value } }
      : { issues: judged.issues.map(inData) }
  const judged = schemas.get(name)?.['~standard'].validate(data) ?? { value: data }
  return judged instanceof Promise ? judged.then(received) : received(judged)
}

function refused(field: string, message: string): Judged {
  return { issues: [{ path: [field], message }] }
}

function inData({ message, path = [] }: StandardSchemaV1.Issue): StandardSchemaV1.Issue {
  return { message, path: ['data', ...path] }
}
