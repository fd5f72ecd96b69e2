/** Unique keys: at most one job holds a key at a time, for as long as its rule says. Each job name has its own keys. */
import { HoldfastError } from '../errors.ts'
import type { Duration } from '../std/duration.ts'
import { duration } from './duration.ts'
import { locate, oneOf, readersFor, refuseUnknown, string, type Located } from './options.ts'

export type OnConflict = 'ignore' | 'replace' | 'reschedule'

export interface Unique {
  readonly key: string
  /** Held until the job is first claimed ('ready'), or until it is final ('unfinished'). @default 'unfinished' */
  readonly while?: 'ready' | 'unfinished'
  /** Held for this long from the enqueue, whatever happens to the job; replaces `while`. */
  readonly for?: Duration
  /**
   * What an enqueue does if the key is held: leave the holder alone, replace its input and options, or move its due
   * time. Only a waiting holder is changed. @default 'ignore'
   */
  readonly onConflict?: OnConflict
}

/** As passed to stores. */
export interface UniqueClaim {
  readonly key: string
  readonly hold: { readonly while: 'ready' | 'unfinished' } | { readonly forMs: number }
  readonly onConflict: OnConflict
}

const MAX_KEY_CHARS = 512
const FIELDS = readersFor<Unique>()({
  key: string(MAX_KEY_CHARS),
  while: oneOf('ready', 'unfinished'),
  for: duration(),
  onConflict: oneOf('ignore', 'replace', 'reschedule'),
})

export type UniquePaths = Located<typeof FIELDS>
/** What `unique` of a definition returned. */
export const RETURNED_UNIQUE = locate('unique()', FIELDS)

/** What an enqueue was given. */
export function uniquePaths(path: string): UniquePaths {
  return locate(path, FIELDS)
}

/** Field by field instead of by `readOptions`, since it is done for each job that has a key. */
export function readUnique(
  jobName: string,
  unique: Unique,
  { path, of }: UniquePaths = RETURNED_UNIQUE,
): UniqueClaim {
  refuseUnknown(unique, path, FIELDS)
  const { onConflict } = unique
  const key = FIELDS.key(unique.key, of.key)
  return {
    // Job names hold no white space, so the scoped key cannot be read in two ways.
    key: `${jobName} ${key}`,
    hold: readHold(unique, of),
    onConflict: onConflict === undefined ? 'ignore' : FIELDS.onConflict(onConflict, of.onConflict),
  }
}

function readHold(unique: Unique, of: UniquePaths['of']): UniqueClaim['hold'] {
  if (unique.for === undefined)
    return { while: unique.while === undefined ? 'unfinished' : FIELDS.while(unique.while, of.while) }
  if (unique.while === undefined) return { forMs: FIELDS.for(unique.for, of.for) }
  throw new HoldfastError('HF_BAD_OPTION', `\`${of.for}\` and \`${of.while}\` cannot both be given.`, {
    hint: "Use { key, while: 'ready' | 'unfinished' } or { key, for: '10m' }.",
  })
}
