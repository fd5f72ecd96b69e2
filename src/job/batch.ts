/** How the jobs of a batch handler are put together: read once, from the definition. */
import { HoldfastError } from '../errors.ts'
import type { Duration } from '../std/duration.ts'
import { readDuration } from './duration.ts'
import { readWhole } from './numbers.ts'
import { show } from './show.ts'

export interface BatchOptions {
  /** The most jobs in one call of the handler; by itself it finds out. @default 'adaptive' */
  readonly size?: number | 'adaptive' | AdaptiveSize
  /** A call begins once this many are there, even where more would fit. @default 1 */
  readonly fill?: number
  /** … or once the oldest of them has waited this long. @default '1s' */
  readonly wait?: Duration
}

/** A size that shrinks while batches take long, and grows while they do not. */
export interface AdaptiveSize {
  /** @default 5 */
  readonly min?: number
  /** @default 50 */
  readonly max?: number
  /** @default 10 */
  readonly start?: number
  /** Where the mean of the last batches is above this, the size is halved. @default '5s' */
  readonly shrinkAbove?: Duration
  /** Where it is below this, the size grows by half. @default '2s' */
  readonly growBelow?: Duration
  /** Of so many batches. @default 10 */
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

/** As many as one claim brings. */
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
