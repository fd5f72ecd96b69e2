/**
 * The three forms of a domain event: as published, as stored in each subscriber's job, and as passed to their handlers.
 * The raw data is stored, so that defaults and coercions apply when a subscriber runs, by the schema that it knows.
 */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { JobId } from './ids.ts'
import { matches } from './pattern.ts'
import { encodePayload, parseInput, PAYLOAD_LIMITS } from './payload.ts'
import type { Envelope } from './record.ts'
import { show } from './show.ts'

/** The input of a subscriber's handler. */
export interface ReceivedEvent<Name extends string = string, Data = unknown> {
  /** The same for all subscribers and all their attempts. */
  readonly id: string
  readonly name: Name
  /** By the publisher's clock. */
  readonly publishedAt: Date
  readonly data: Data
}

/** A subscriber's events, with the schemas that parse their data. */
export interface Interest {
  readonly patterns: readonly string[]
  /** Schemas of the events that it names; data matched by a pattern is not parsed. */
  readonly schemas: ReadonlyMap<string, StandardSchemaV1 | undefined>
}

/** Ready to be written for each subscriber. */
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

/** A promise only if the event's schema is asynchronous. */
export function prepareEvent(parts: EventParts): PreparedEvent | Promise<PreparedEvent> {
  const checked = parseInput(parts.schema, parts.data, parts.name, 'event')
  return checked instanceof Promise ? checked.then(() => seal(parts)) : seal(parts)
}

function seal({ id, name, data, nowMs, envelope }: EventParts): PreparedEvent {
  const at = new Date(nowMs).toISOString()
  const payload = encodePayload({ id, name, at, data }, name, PAYLOAD_LIMITS, 'event')
  // All jobs of one event share a correlation id, even if the publisher had none.
  return { id, name, payload, envelope: { ...envelope, correlationId: envelope.correlationId ?? id } }
}

/** The schema of a subscriber's input: turns the stored event into the handler's event. */
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
