/**
 * Reads options: whatever a user passes as an object of named values. The contract:
 *
 * - A field that is not in the table is refused, and the hint names the nearest one and lists all of them.
 * - A table is checked against the options' type by `readersFor<SomeOptions>()`: a field that is missing from it does not
 *   compile, nor does one that the type does not have.
 * - `undefined` means "not given", so that callers can pass on what they may have been given. `null` is a value, and wrong.
 * - Each value is read once, by the reader of its field: it returns what the code goes on with (milliseconds, a Map), or
 *   throws by `refused()`. Defaults belong to the caller.
 * - Each message names the option by its path: `work().health.idle`.
 *
 * Per job there is no time for this: `enqueue()` checks the fields by `refuseUnknown()` and calls the readers itself, with
 * paths that were made beforehand by `locate()`.
 */
import { HoldfastError, type ErrorCode } from '../errors.ts'
import { nearest } from '../std/nearest.ts'
import { cleanText } from '../std/text.ts'
import { show } from './show.ts'

/** Returns the value as the code uses it, or throws an error that names the option by `path`. */
export type Reader<T> = (value: unknown, path: string) => T

/** A reader for each field of T, no more and no less. */
type Readers<T> = { readonly [K in keyof T]-?: Reader<unknown> }

/** A table for T: a field that is forgotten or not T's does not compile, even if it comes from another table. */
export function readersFor<T>() {
  return <R extends Readers<T>>(readers: R & { readonly [K in Exclude<keyof R, keyof T>]: never }): R =>
    readers
}

/** What `readOptions` makes of the options: a field that was not given is missing. */
export type Read<R> = { readonly [K in keyof R]?: R[K] extends Reader<infer T> ? T : never }

/** Some groups of options are refused under a code of their own. */
type OptionCode = Extract<ErrorCode, 'HF_BAD_OPTION' | 'HF_BAD_JOB' | 'HF_BAD_SCHEDULE' | 'HF_BAD_FILTER'>

export function readOptions<R extends object>(
  given: unknown,
  path: string,
  readers: R,
  code: OptionCode = 'HF_BAD_OPTION',
): Read<R> {
  refuseUnknown(given, path, readers, code)
  const read: Record<string, unknown> = {}
  for (const field in given) {
    const value = (given as Readonly<Record<string, unknown>>)[field]
    if (value === undefined) continue
    read[field] = (readers as Readonly<Record<string, Reader<unknown>>>)[field]?.(value, `${path}.${field}`)
  }
  return read as Read<R>
}

/** A reader of options inside of options. */
export function options<R extends object>(readers: R, code?: OptionCode): Reader<Read<R>> {
  return (value, path) => readOptions(value, path, readers, code)
}

const NONE: readonly string[] = []

/**
 * Refuses what is not an object, and fields that `readers` does not have. Inherited fields count: they are read, too.
 * `also` names options that the caller has taken out before.
 */
export function refuseUnknown(
  given: unknown,
  path: string,
  readers: object,
  code: OptionCode = 'HF_BAD_OPTION',
  also: readonly string[] = NONE,
): asserts given is object {
  if (!isPlain(given)) throw coded(code, noObject(given, path))
  for (const field in given)
    if (!Object.hasOwn(readers, field))
      throw unknownOption(path, field, [...Object.keys(readers), ...also], code)
}

function noObject(given: unknown, path: string): HoldfastError {
  if (!path.endsWith(')')) return refused(path, given, 'an object')
  const message = `The options of \`${path}\` are ${show(given)}; they must be an object.`
  return new HoldfastError('HF_BAD_OPTION', message, { hint: 'Use an object.' })
}

function isPlain(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function unknownOption(
  path: string,
  field: string,
  fields: readonly string[],
  code: OptionCode,
): HoldfastError {
  const meant = nearest(field, fields)
  const guess = meant === null ? '' : `Did you mean \`${meant}\`? `
  return new HoldfastError(code, `Unknown option \`${member(path, field)}\`.`, {
    hint: `${guess}Options: ${fields.join(', ')}.`,
  })
}

/** The error for a value that an option cannot have. */
export function refused(path: string, value: unknown, accepted: string, hint?: string): HoldfastError {
  return refusedAs(path, show(value), accepted, hint)
}

/** For values that may hold a password, and so are not shown. */
function refusedUnseen(path: string, value: unknown, accepted: string): HoldfastError {
  const shown = value === null || value === '' ? show(value) : `of type ${typeof value}`
  return refusedAs(path, shown, accepted)
}

function refusedAs(path: string, shown: string, accepted: string, hint = `Use ${accepted}.`): HoldfastError {
  return new HoldfastError('HF_BAD_OPTION', `\`${path}\` is ${shown}; it must be ${accepted}.`, { hint })
}

/** The same error under another code. */
export function coded(code: OptionCode, error: HoldfastError): HoldfastError {
  return code === error.code ? error : new HoldfastError(code, error.message, { hint: error.hint })
}

/** A reader whose refusals have another code. */
export function under<T>(code: OptionCode, reader: Reader<T>): Reader<T> {
  return (value, path) => {
    try {
      return reader(value, path)
    } catch (error) {
      throw error instanceof HoldfastError && error.code === 'HF_BAD_OPTION' ? coded(code, error) : error
    }
  }
}

const NAME = /^[\p{L}_$][\p{L}\p{N}_$-]*$/u

/** `queues.mail`, and `queues["send mail"]` for a name that could be taken for a path itself. */
export function member(path: string, name: string): string {
  return NAME.test(name) && name.length <= 100
    ? `${path}.${name}`
    : `${path}[${JSON.stringify(cleanText(name, 100))}]`
}

/** Where the options of a table stand: paths that are made once, for what is read per job. */
export interface Located<R> {
  readonly path: string
  readonly of: { readonly [K in keyof R]: string }
}

export function locate<R extends object>(path: string, readers: R): Located<R> {
  const paths = Object.keys(readers).map((field) => [field, `${path}.${field}`])
  return Object.freeze({ path, of: Object.freeze(Object.fromEntries(paths)) as Located<R>['of'] })
}

// ── readers ──────────────────────────────────────────────────────────────────

/** For values that are judged elsewhere, such as a transaction or a job's input. */
export const asGiven: Reader<unknown> = (value) => value

export function whole(min: number, max = Number.MAX_SAFE_INTEGER): Reader<number> {
  const accepted = `a whole number from ${min}${max === Number.MAX_SAFE_INTEGER ? '' : ` to ${max}`}`
  return (value, path) => {
    if (typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max) return value
    throw refused(path, value, accepted)
  }
}

/** Any finite number above zero. */
export const positive: Reader<number> = (value, path) => {
  if (typeof value === 'number' && value > 0 && Number.isFinite(value)) return value
  throw refused(path, value, 'a number above zero')
}

export const fraction: Reader<number> = (value, path) => {
  if (typeof value === 'number' && value >= 0 && value <= 1) return value
  throw refused(path, value, 'a number from 0 to 1')
}

export const boolean: Reader<boolean> = (value, path) => {
  if (typeof value === 'boolean') return value
  throw refused(path, value, 'true or false')
}

/** What it takes and returns is between its caller and whoever wrote it. */
export function fn<F extends (...args: never[]) => unknown>(): Reader<F> {
  return (value, path) => {
    if (typeof value === 'function') return value as F
    throw refused(path, value, 'a function')
  }
}

export function oneOf<const T extends string>(...choices: readonly T[]): Reader<T> {
  const accepted = `one of ${choices.map((choice) => `'${choice}'`).join(', ')}`
  return (value, path) => {
    if ((choices as readonly unknown[]).includes(value)) return value as T
    throw refused(path, value, accepted)
  }
}

/** A text that every store can hold. */
export function string(maxChars: number): Reader<string> {
  const accepted = `a text of 1 to ${maxChars} characters without NUL bytes or broken characters`
  return (value, path) => {
    const fits = typeof value === 'string' && value !== '' && value.length <= maxChars
    if (fits && !value.includes('\0') && value.isWellFormed()) return value
    throw refused(path, value, accepted)
  }
}

/** Such as a URL, which may have a password. */
export function secret(accepted: string): Reader<string> {
  return (value, path) => {
    if (typeof value === 'string' && value !== '') return value
    throw refusedUnseen(path, value, accepted)
  }
}

/** An object of somebody else's class, by what is called of it. */
export function having<T extends object>(...methods: readonly (keyof T & string)[]): Reader<T> {
  const called = methods.map((method) => `${method}()`).join(', ')
  const accepted = called === '' ? 'an object' : `an object with ${called}`
  return (value, path) => {
    const given = Object(value) as Readonly<Record<string, unknown>>
    if (value !== given || !methods.every((method) => typeof given[method] === 'function'))
      throw refusedUnseen(path, value, accepted)
    return value as T
  }
}

export function list<T>(item: Reader<T>, maxItems = Infinity): Reader<readonly T[]> {
  const accepted = maxItems === Infinity ? 'a list' : `a list of at most ${maxItems}`
  return (value, path) => {
    if (!Array.isArray(value)) throw refused(path, value, accepted)
    if (value.length > maxItems) throw refusedAs(path, `a list of ${value.length}`, accepted)
    // Not value.map, which passes over holes.
    return Array.from(value as readonly unknown[], (one, index) => {
      try {
        return item(one, path)
      } catch {
        // Only now, since tags are read per job: a path for each of them would be most of the work.
        return item(one, `${path}[${index}]`)
      }
    })
  }
}

/** Values by names of the user's own. A Map, since any text can be a name. */
export function record<T>(value: Reader<T>): Reader<ReadonlyMap<string, T>> {
  return (given, path) => {
    if (!isPlain(given)) throw refused(path, given, 'an object')
    return new Map(Object.entries(given).map(([name, one]) => [name, value(one, member(path, name))]))
  }
}

/** By its shape: signals also come from other realms, and from libraries. */
export const signal: Reader<AbortSignal> = (value, path) => {
  const { aborted, addEventListener } = Object(value) as Partial<AbortSignal>
  if (typeof aborted === 'boolean' && typeof addEventListener === 'function') return value as AbortSignal
  throw refused(path, value, 'an AbortSignal')
}
