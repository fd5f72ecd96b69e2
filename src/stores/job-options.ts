/** What few jobs have, apart from the rest: stores that pack jobs leave it out where all of it is empty. */
import type { Envelope, NewJob } from '../job/record.ts'

export interface JobOptions {
  readonly group: string | null
  readonly limits: readonly string[]
  readonly envelope: Envelope
}

const NO_OPTIONS: JobOptions = {
  group: null,
  limits: [],
  envelope: { correlationId: null, tags: [], metadata: {}, retry: null, timeoutMs: null },
}

/** Null where all of it is empty. */
export function packOptions({ group, limits, envelope }: NewJob): JobOptions | null {
  const { correlationId, tags, metadata, retry, timeoutMs, expires } = envelope
  const plain =
    group === null &&
    limits.length === 0 &&
    correlationId === null &&
    tags.length === 0 &&
    retry === null &&
    timeoutMs === null &&
    expires === undefined &&
    Object.keys(metadata).length === 0
  return plain ? null : { group, limits, envelope }
}

export function unpackOptions(packed: JobOptions | null): JobOptions {
  return packed ?? NO_OPTIONS
}
