/**
 * Turns a subscriber's definition into a job definition: its input is an event, and its handler is one for all events,
 * or combines a handler for each. Invalid definitions are rejected here, before anything is stored.
 */
import { Fatal, HoldfastError } from '../errors.ts'
import type { RunFunction } from '../job/context.ts'
import { readJobName, readSchema, type RawDefinition } from '../job/definition.ts'
import { eventSchema, type Interest, type ReceivedEvent } from '../job/domain-event.ts'
import { isExact, matches, readEventName, readPattern } from '../job/pattern.ts'
import { asGiven, readersFor, refuseUnknown } from '../job/options.ts'

export interface SubscriberDefinition {
  readonly patterns: readonly string[]
  readonly job: RawDefinition
}

interface RawSubscriber extends RawDefinition {
  readonly to?: unknown
  readonly on?: unknown
}

/**
 * Those of a job without `input` and `output`, which are the event's, and `unique`, which needs the code of whoever
 * publishes. What both have is read with the job.
 */
const FIELDS = readersFor<Omit<RawSubscriber, 'input' | 'output' | 'unique' | 'batch' | 'schedule'>>()({
  name: asGiven,
  to: asGiven,
  queue: asGiven,
  priority: asGiven,
  retry: asGiven,
  timeout: asGiven,
  run: asGiven,
  on: asGiven,
})

export function readSubscriber(raw: object): SubscriberDefinition {
  refuseUnknown(raw, 'subscribe()', FIELDS, 'HF_BAD_JOB')
  const { to, on, ...rest } = raw as RawSubscriber
  const name = readJobName(rest.name)
  const interest = readInterest(name, to)
  if ((rest.run === undefined) === (on === undefined))
    throw bad(`Subscriber "${name}" needs a handler: either \`run\` or \`on\`.`)
  const run = on === undefined ? rest.run : byName(name, readHandlers(name, on, interest))
  return { patterns: interest.patterns, job: { ...rest, input: eventSchema(interest), run } }
}

function readInterest(name: string, to: unknown): Interest {
  const topics: readonly unknown[] = Array.isArray(to) ? to : [to]
  if (topics.length === 0) throw bad(`Subscriber "${name}" is subscribed to nothing.`)
  const schemas: [string, Interest['schemas'] extends ReadonlyMap<string, infer S> ? S : never][] = []
  const patterns = topics.map((topic) => {
    if (typeof topic !== 'object' || topic === null) return readPattern(topic)
    const event = topic as { readonly name?: unknown; readonly schema?: unknown }
    const eventName = readEventName(event.name)
    schemas.push([
      eventName,
      event.schema === undefined ? undefined : readSchema(event.schema, `${eventName}.schema`),
    ])
    return eventName
  })
  return { patterns, schemas: new Map(schemas) }
}

type Handlers = ReadonlyMap<string, RunFunction>

function readHandlers(name: string, on: unknown, { patterns }: Interest): Handlers {
  if (typeof on !== 'object' || on === null) throw bad(`\`on\` of subscriber "${name}" is not an object.`)
  const handlers = new Map(Object.entries(on))
  for (const [event, run] of handlers) {
    if (typeof run !== 'function') throw bad(`Subscriber "${name}" has no function for event "${event}".`)
    if (patterns.some((pattern) => matches(pattern, readEventName(event)))) continue
    throw bad(`Subscriber "${name}" has a handler for event "${event}", which never reaches it.`)
  }
  const missing = patterns.find((pattern) => isExact(pattern) && !handlers.has(pattern))
  if (missing !== undefined) throw bad(`Subscriber "${name}" has no handler for event "${missing}".`)
  if (handlers.size === 0) throw bad(`\`on\` of subscriber "${name}" has no handlers.`)
  return handlers as Handlers
}

function byName(name: string, handlers: Handlers): RunFunction {
  return (context) => {
    const { name: event } = context.input as ReceivedEvent
    const run = handlers.get(event)
    if (run !== undefined) return run(context)
    // A retry would fail the same way.
    throw new Fatal(
      `Subscriber "${name}" has no handler for event "${event}"; it has: ${[...handlers.keys()].join(', ')}.`,
    )
  }
}

function bad(message: string): HoldfastError {
  return new HoldfastError('HF_BAD_JOB', message, {
    hint: "Define it as { name, to: event, run }, or with a handler for each event: { name, to: 'order.*', on: { 'order.paid': run } }.",
  })
}
