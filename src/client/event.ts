/** The public object of a domain event. */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { HoldfastError } from '../errors.ts'
import { readSchema } from '../job/definition.ts'
import { ENVELOPE_FIELDS } from '../job/new-job.ts'
import { asGiven, readersFor, readOptions, refuseUnknown } from '../job/options.ts'
import { readEventName } from '../job/pattern.ts'
import type { Client } from './client.ts'
import type { DomainEvent, PublishOptions } from './event-types.ts'
import { withoutTx } from './job.ts'

/** An event without its types, which the public signatures in holdfast.ts restore. */
export type UntypedEvent = DomainEvent<string, StandardSchemaV1 | undefined>

const FIELDS = readersFor<PublishOptions>()({ ...ENVELOPE_FIELDS, tx: asGiven })

export function eventObject(
  client: Client,
  name: string,
  schema: StandardSchemaV1 | undefined,
): UntypedEvent {
  readEventName(name)
  const kind = { name, schema: schema === undefined ? undefined : readSchema(schema, 'event().schema') }
  if (client.eventNames.has(name))
    throw new HoldfastError('HF_DUPLICATE_EVENT', `There is already an event named "${name}".`)
  client.eventNames.add(name)
  return Object.freeze({
    ...kind,
    async publish(data: unknown, given: PublishOptions = {}) {
      // Values are judged where they are read: this is done for each event.
      refuseUnknown(given, 'publish()', FIELDS)
      const { tx, options } = withoutTx(given)
      return client.publisher.one(kind, data, options, tx)
    },
    async publishMany(items: Iterable<unknown> | AsyncIterable<unknown>, given: PublishOptions = {}) {
      readOptions(given, 'publishMany()', FIELDS)
      const { tx, options } = withoutTx(given)
      return client.publisher.many(kind, items, options, tx)
    },
  })
}
