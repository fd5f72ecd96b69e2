/** The public object of a domain event. */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { HoldfastError } from '../errors.ts'
import { readSchema } from '../job/definition.ts'
import { readEventName } from '../job/pattern.ts'
import type { Client } from './client.ts'
import type { DomainEvent, PublishOptions } from './event-types.ts'
import { withoutTx } from './job.ts'
import { refuseUnknown } from '../core/settings.ts'

/** An event without its types, which the public signatures in holdfast.ts restore. */
export type UntypedEvent = DomainEvent<string, StandardSchemaV1 | undefined>

const OPTIONS: ReadonlySet<string> = new Set(['tx', 'tags', 'correlationId', 'metadata'])

export function eventObject(
  client: Client,
  name: string,
  schema: StandardSchemaV1 | undefined,
): UntypedEvent {
  readEventName(name)
  const kind = { name, schema: readSchema(schema, 'schema') }
  if (client.eventNames.has(name))
    throw new HoldfastError('HF_DUPLICATE_EVENT', `There is already an event named "${name}".`)
  client.eventNames.add(name)
  return Object.freeze({
    ...kind,
    async publish(data: unknown, given: PublishOptions = {}) {
      refuseUnknown(given, OPTIONS, 'publish()')
      const { tx, options } = withoutTx(given)
      return client.publisher.one(kind, data, options, tx)
    },
    async publishMany(items: Iterable<unknown> | AsyncIterable<unknown>, given: PublishOptions = {}) {
      refuseUnknown(given, OPTIONS, 'publishMany()')
      const { tx, options } = withoutTx(given)
      return client.publisher.many(kind, items, options, tx)
    },
  })
}
