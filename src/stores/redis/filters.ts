/** Job filters as scripts take them. */
import type { JobId } from '../../job/ids.ts'
import { isFinal, JOB_STATES, type JobState } from '../../job/states.ts'
import type { JobFilter } from '../store.ts'
import { packId, type PackedId } from './ids.ts'

/** As filter.lua names them. */
const LETTERS: Readonly<Record<JobState, string>> = {
  scheduled: 's',
  blocked: 'b',
  ready: 'r',
  running: 'u',
  completed: 'c',
  dead: 'd',
  cancelled: 'x',
}

/** The states that a filter selects, as letters; undefined for all. Only final jobs have a time at which they ended. */
export function statesOf({ states, finishedFrom, finishedBefore }: JobFilter): string | undefined {
  const isTimed = finishedFrom !== undefined || finishedBefore !== undefined
  const selected = isTimed ? (states ?? JOB_STATES).filter(isFinal) : states
  return selected === undefined ? undefined : [...new Set(selected)].map((state) => LETTERS[state]).join('')
}

/** As filter.lua takes it. Ids and their prefix are left to the caller. */
export function filterText(filter: JobFilter): string {
  const { queues, names, tags, fingerprints, finishedFrom, finishedBefore } = filter
  return JSON.stringify({
    states: statesOf(filter),
    queues,
    names,
    tags,
    fingerprints,
    // The text that the stored JSON of a matching job contains.
    tag_texts: tags?.map((tag) => JSON.stringify(tag)),
    // Stored in a JSON text within a JSON text, which may write other characters in other ways.
    fingerprint_texts: fingerprints?.map((text) => (/^\w+$/.test(text) ? text : '')),
    from: finishedFrom,
    before: finishedBefore,
    created_from: filter.createdFrom,
    created_before: filter.createdBefore,
  })
}

const LOWEST = '00000000-0000-0000-0000-000000000000'
const HIGHEST = 'ffffffff-ffff-ffff-ffff-ffffffffffff'
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** The lowest and the highest id with a prefix; null if no id can begin with it. */
export function boundsOf(
  prefix: string | undefined,
): readonly [low: PackedId | '', high: PackedId | ''] | null {
  if (prefix === undefined || prefix === '') return ['', '']
  // Pads the prefix to a whole id, so that one pattern can check it.
  const isPossible = UUID.test(prefix + LOWEST.slice(prefix.length))
  if (!isPossible) return null
  const fill = (text: string): PackedId => packId((prefix + text.slice(prefix.length)) as JobId)
  return [fill(LOWEST), fill(HIGHEST)]
}
