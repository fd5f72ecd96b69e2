/** Matches a record against a job filter, for stores that examine jobs one by one. */
import type { JobRecord } from '../job/record.ts'
import type { JobFilter } from './store.ts'

export function matches(record: JobRecord, filter: JobFilter): boolean {
  const { ids, states, queues, names, fingerprints, tags, idPrefix } = filter
  return (
    (ids === undefined || ids.includes(record.id)) &&
    (states === undefined || states.includes(record.state)) &&
    (queues === undefined || queues.includes(record.queue)) &&
    (names === undefined || names.includes(record.name)) &&
    (idPrefix === undefined || record.id.startsWith(idPrefix)) &&
    (tags === undefined || record.envelope.tags.some((tag) => tags.includes(tag))) &&
    (fingerprints === undefined ||
      (record.error !== null && fingerprints.includes(record.error.fingerprint))) &&
    isWithin(record.createdAt, filter.createdFrom, filter.createdBefore) &&
    isWithin('finishedAt' in record ? record.finishedAt : null, filter.finishedFrom, filter.finishedBefore)
  )
}

/** A record without this time matches only if the filter has no bound on it. */
function isWithin(time: number | null, from: number | undefined, before: number | undefined): boolean {
  if (from === undefined && before === undefined) return true
  return time !== null && (from === undefined || time >= from) && (before === undefined || time < before)
}
