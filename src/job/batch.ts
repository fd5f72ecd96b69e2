/** How a batch handler's jobs are grouped: read once, from the definition. */
import { HoldfastError } from '../errors.ts'
import type { Duration } from '../std/duration.ts'
import { duration } from './duration.ts'
import { readersFor, readOptions, refused, whole } from './options.ts'

export interface BatchOptions {
  /** Maximum number of jobs per handler call; 'adaptive' finds it by itself. @default 'adaptive' */
  readonly size?: number | 'adaptive' | AdaptiveSize
  /** A call begins once this many jobs are gathered, even if more would fit. @default 1 */
  readonly fill?: number
  /** … or once the oldest has waited this long. @default '1s' */
  readonly wait?: Duration
}

/** A size that shrinks while batches are slow and grows while they are fast. */
export interface AdaptiveSize {
  /** @default 5 */
  readonly min?: number
  /** @default 50 */
  readonly max?: number
  /** @default 10 */
  readonly start?: number
  /** The size is halved if the mean duration of the last batches is above this. @default '5s' */
  readonly shrinkAbove?: Duration
  /** The size grows by half if it is below this. @default '2s' */
  readonly growBelow?: Duration
  /** Number of batches in the mean. @default 10 */
  readonly over?: number
}

export interface SizeRules {
  readonly min: number
  readonly max: number
  readonly start: number
  readonly shrinkAboveMs: number
  readonly growBelowMs: number
  readonly over: number
}

export interface BatchRules {
  readonly size: SizeRules
  readonly fill: number
  readonly waitMs: number
}

/** As many as one claim returns. */
const LARGEST = 1_000
const COUNT = whole(1, LARGEST)
const FIELDS = readersFor<BatchOptions>()({
  size: readSize,
  fill: COUNT,
  wait: duration({ orZero: true }),
})
const SIZE_FIELDS = readersFor<AdaptiveSize>()({
  min: COUNT,
  max: COUNT,
  start: COUNT,
  shrinkAbove: duration(),
  growBelow: duration({ orZero: true }),
  over: whole(1, 1_000),
})

export function readBatch(options: unknown, path: string): BatchRules {
  const read = readOptions(options, path, FIELDS, 'HF_BAD_JOB')
  const { size = readAdaptive({}, `${path}.size`), fill = 1, wait: waitMs = 1_000 } = read
  // A call never begins if it waits for more jobs than it can have.
  whole(1, size.max)(fill, `${path}.fill`)
  return { size, fill, waitMs }
}

function readSize(value: unknown, path: string): SizeRules {
  if (value === 'adaptive') return readAdaptive({}, path)
  if (typeof value === 'object' && value !== null) return readAdaptive(value, path)
  if (typeof value !== 'number')
    throw refused(path, value, `'adaptive', an object, or a whole number from 1 to ${LARGEST}`)
  const fixed = COUNT(value, path)
  return { min: fixed, max: fixed, start: fixed, shrinkAboveMs: Infinity, growBelowMs: 0, over: 1 }
}

function readAdaptive(given: unknown, path: string): SizeRules {
  const read = readOptions(given, path, SIZE_FIELDS, 'HF_BAD_JOB')
  const { max = Math.max(50, read.min ?? 0), shrinkAbove = 5_000, growBelow = 2_000, over = 10 } = read
  const min = whole(1, max)(read.min ?? Math.min(5, max, read.start ?? max), `${path}.min`)
  const start = whole(min, max)(read.start ?? Math.min(Math.max(10, min), max), `${path}.start`)
  if (growBelow > shrinkAbove)
    throw new HoldfastError(
      'HF_BAD_JOB',
      `\`${path}.growBelow\` is longer than \`shrinkAbove\`: the size would never come to rest.`,
    )
  return { min, max, start, shrinkAboveMs: shrinkAbove, growBelowMs: growBelow, over }
}
