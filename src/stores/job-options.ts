/** Options that few jobs have, separate from the rest: stores that pack jobs keep only non-empty ones. */
import type { Envelope } from '../job/record.ts'

interface JobOptions {
  readonly group: string | null
  readonly limits: readonly string[]
  readonly envelope: Envelope
}

/** As in the JSON; missing fields are empty. */
export interface PackedOptions {
  readonly group?: string
  readonly limits?: readonly string[]
  readonly envelope?: Partial<Envelope>
}

const NO_ENVELOPE: Envelope = { correlationId: null, tags: [], metadata: {}, retry: null, timeoutMs: null }
const NO_OPTIONS: JobOptions = { group: null, limits: [], envelope: NO_ENVELOPE }

/** Null if all of them are empty. */
export function packOptions({ group, limits, envelope }: JobOptions): PackedOptions | null {
  const packed = packEnvelope(envelope)
  if (group === null && limits.length === 0 && packed === null) return null
  return {
    ...(group !== null && { group }),
    ...(limits.length > 0 && { limits }),
    ...(packed !== null && { envelope: packed }),
  }
}

function packEnvelope(envelope: Envelope): Partial<Envelope> | null {
  const { correlationId, tags, metadata, retry, timeoutMs, expires } = envelope
  const hasMetadata = Object.keys(metadata).length > 0
  const isEmpty = correlationId === null && retry === null && timeoutMs === null && expires === undefined
  if (isEmpty && tags.length === 0 && !hasMetadata) return null
  return {
    ...(correlationId !== null && { correlationId }),
    ...(tags.length > 0 && { tags }),
    ...(hasMetadata && { metadata }),
    ...(retry !== null && { retry }),
    ...(timeoutMs !== null && { timeoutMs }),
    ...(expires !== undefined && { expires }),
  }
}

export function unpackOptions(packed: PackedOptions | null): JobOptions {
  if (packed === null) return NO_OPTIONS
  const { group = null, limits = [], envelope } = packed
  return { group, limits, envelope: envelope === undefined ? NO_ENVELOPE : { ...NO_ENVELOPE, ...envelope } }
}
