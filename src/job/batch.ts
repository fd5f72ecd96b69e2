/** How a batch handler's jobs are grouped: read once, from the definition. */
import { HoldfastError } from '../errors.ts'
import type { Duration } from '../std/duration.ts'
import { readDuration } from './duration.ts'
import { readWhole } from './numbers.ts'
import { show } from './show.ts'

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
const FIELDS: ReadonlySet<string> = new Set(['size', 'fill', 'wait'])
const SIZE_FIELDS: ReadonlySet<string> = new Set(['min', 'max', 'start', 'shrinkAbove', 'growBelow', 'over'])

export function readBatch(options: BatchOptions): BatchRules {
  refuseOthers(options, FIELDS, 'batch')
  const size = readSize(options.size ?? 'adaptive')
  const fill = readWhole(options.fill ?? 1, 'batch.fill', 1, size.max)
  const waitMs = readDuration(options.wait ?? '1s', 'batch.wait', { orZero: true })
  return { size, fill, waitMs }
}

function readSize(size: unknown): SizeRules {
  if (size === 'adaptive') return readAdaptive({})
  if (typeof size === 'object' && size !== null) return readAdaptive(size)
  const fixed = readWhole(size, 'batch.size', 1, LARGEST)
  return { min: fixed, max: fixed, start: fixed, shrinkAboveMs: Infinity, growBelowMs: 0, over: 1 }
}

function readAdaptive(given: AdaptiveSize): SizeRules {
  refuseOthers(given, SIZE_FIELDS, 'batch.size')
  const max = readWhole(given.max ?? Math.max(50, given.min ?? 0), 'batch.size.max', 1, LARGEST)
  const min = readWhole(given.min ?? Math.min(5, max, given.start ?? max), 'batch.size.min', 1, max)
  const start = readWhole(given.start ?? Math.min(Math.max(10, min), max), 'batch.size.start', min, max)
  const shrinkAboveMs = readDuration(given.shrinkAbove ?? '5s', 'batch.size.shrinkAbove')
  const growBelowMs = readDuration(given.growBelow ?? '2s', 'batch.size.growBelow', { orZero: true })
  if (growBelowMs > shrinkAboveMs)
    throw bad('batch.size.growBelow is longer than shrinkAbove: the size would never come to rest.')
  return {
    min,
    max,
    start,
    shrinkAboveMs,
    growBelowMs,
    over: readWhole(given.over ?? 10, 'batch.size.over', 1, 1_000),
  }
}

function refuseOthers(options: unknown, fields: ReadonlySet<string>, where: string): void {
  if (typeof options !== 'object' || options === null)
    throw bad(`\`${where}\` is ${show(options)}, not an object.`)
  for (const field of Object.keys(options)) {
    if (!fields.has(field))
      throw bad(`\`${where}\` has no option "${field}".`, `Use ${[...fields].join(', ')}.`)
  }
}

function bad(message: string, hint?: string): HoldfastError {
  return new HoldfastError('HF_BAD_JOB', message, hint === undefined ? {} : { hint })
}
