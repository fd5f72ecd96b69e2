/** Job filters: as scripts take them, and held against a record. */
import type { JobRecord } from '../../job/record.ts'
import { isFinal, JOB_STATES, type JobState } from '../../job/states.ts'
import type { JobFilter } from '../store.ts'

/** As change.lua names them. */
const LETTERS: Readonly<Record<JobState, string>> = {
  scheduled: 's',
  blocked: 'b',
  ready: 'r',
  running: 'u',
  completed: 'c',
  dead: 'd',
  cancelled: 'x',
}

/** Which states are meant; undefined for all. Only final jobs have ended at any time. */
export function statesOf({
  states,
  finishedFrom,
  finishedBefore,
}: JobFilter): readonly JobState[] | undefined {
  if (finishedFrom === undefined && finishedBefore === undefined) return states
  return (states ?? JOB_STATES).filter(isFinal)
}

export function matches(record: JobRecord, filter: JobFilter): boolean {
  const { states, queues, names, fingerprints } = filter
  return (
    (states === undefined || states.includes(record.state)) &&
    (queues === undefined || queues.includes(record.queue)) &&
    (names === undefined || names.includes(record.name)) &&
    (fingerprints === undefined ||
      (record.error !== null && fingerprints.includes(record.error.fingerprint))) &&
    endedInTime(record, filter)
  )
}

function endedInTime(record: JobRecord, { finishedFrom, finishedBefore }: JobFilter): boolean {
  if (finishedFrom === undefined && finishedBefore === undefined) return true
  if (!('finishedAt' in record)) return false
  return (
    (finishedFrom === undefined || record.finishedAt >= finishedFrom) &&
    (finishedBefore === undefined || record.finishedAt < finishedBefore)
  )
}

/** For scan.lua, which leaves out most of what does not match. */
export function scanFilter({ names, queues, fingerprints, finishedFrom, finishedBefore }: JobFilter): string {
  return JSON.stringify({
    names,
    queues,
    // It looks for them in JSON, where other characters may be written in other ways.
    fingerprints: fingerprints?.every((text) => /^\w+$/.test(text)) ? fingerprints : undefined,
    from: finishedFrom,
    before: finishedBefore,
  })
}

/** For change.lua: what may have become different since the job was found. */
export function changeFilter({ states, fingerprints, finishedFrom, finishedBefore }: JobFilter): string {
  return JSON.stringify({
    states: states?.map((state) => LETTERS[state]).join(''),
    fingerprints,
    from: finishedFrom,
    before: finishedBefore,
  })
}
