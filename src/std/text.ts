/**
 * Turns anything thrown or logged into text that every store can hold. PostgreSQL refuses NUL and lone surrogates, and
 * a failure path that throws on an error's text would leave its job failing forever; so nothing here throws.
 */
import { inspect, types } from 'node:util'

const NAME_CHARS = 200
const MESSAGE_CHARS = 4_000
const STACK_CHARS = 8_000
/** With causes, the error's own part is cut first: a message of a megabyte must not hide its cause. */
const OWN_STACK_CHARS = 4_000
const RELATED_STACK_CHARS = 1_500
const RELATED_MESSAGE_CHARS = 500
const MAX_RELATED = 5

const UNREADABLE = '(a value that cannot be shown)'
/** A pair is one character under the u flag, so only lone halves match. */
const LONE_SURROGATES = /\p{Surrogate}/gu
/** Runs no getter and no custom inspector: they belong to a value that may be hostile. */
const BRIEF = {
  depth: 2,
  customInspect: false,
  maxArrayLength: 20,
  maxStringLength: 1_000,
  breakLength: Infinity,
}

/**
 * Text that every store can hold: no NUL, no lone surrogates, at most `maxChars` (cut ends with '…', never in the
 * middle of a surrogate pair). Never throws, whatever it is given.
 */
export function cleanText(value: unknown, maxChars: number): string {
  return cut(toText(value), maxChars).replaceAll('\0', '\uFFFD').replace(LONE_SURROGATES, '\uFFFD')
}

/** The reason why a store cannot hold the text; undefined for most texts. */
export function findFlaw(text: string): string | undefined {
  if (text.includes('\0')) return 'a NUL character'
  return /\p{Surrogate}/u.test(text) ? 'a lone surrogate' : undefined
}

function cut(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text
  // Written so that NaN, too, leaves nothing.
  if (!(maxChars >= 1)) return ''
  const end = Math.floor(maxChars) - 1
  const last = text.charCodeAt(end - 1)
  const splitsPair = last >= 0xd800 && last <= 0xdbff
  return `${text.slice(0, splitsPair ? end - 1 : end)}…`
}

function toText(value: unknown): string {
  if (typeof value === 'string') return value
  return ownText(value) ?? attempt(() => inspect(value, BRIEF)) ?? UNREADABLE
}

/** The value's own toString, if it is informative: not "[object Object]", not a function's source. */
function ownText(value: unknown): string | undefined {
  return attempt(() => {
    if (typeof value === 'function' || Array.isArray(value)) return undefined
    const text = String(value)
    return text.startsWith('[object ') ? undefined : text
  })
}

function attempt<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}

/** An Error of this or another realm. Never throws, not even for a proxy that does. */
export function isError(value: unknown): value is Error {
  return attempt(() => types.isNativeError(value) || value instanceof Error) ?? false
}

export interface ErrorDescription {
  readonly name: string
  readonly message: string
  readonly code: string | null
  readonly stack: string | null
}

/**
 * Description of any thrown value, cleaned: for thrown strings, numbers, undefined, objects without a prototype,
 * objects whose toString or message getter throws, Errors with causes (a chain of at most 5, cycles cut) and
 * AggregateErrors (the first 5). `stack` includes the causes. Never throws.
 */
export function describeError(thrown: unknown): ErrorDescription {
  try {
    const { name, message } = headOf(thrown, MESSAGE_CHARS)
    return { name, message: withMembers(thrown, message), code: codeOf(thrown), stack: stackOf(thrown) }
  } catch {
    // Every read above is guarded; this can only be a stack that was about to overflow when we were called.
    return { name: 'Error', message: UNREADABLE, code: null, stack: null }
  }
}

/** The value itself if it is an Error, of whatever realm; otherwise an Error about it, with the value as its cause. Never throws. */
export function toError(thrown: unknown): Error {
  return isError(thrown) ? thrown : new Error(describeError(thrown).message, { cause: thrown })
}

/** What to say of a thrown value in a sentence of our own. Never throws. */
export function messageOf(thrown: unknown): string {
  return describeError(thrown).message
}

interface Head {
  readonly name: string
  readonly message: string
}

function headOf(thrown: unknown, maxChars: number): Head {
  if (!isObject(thrown)) return { name: 'NonError', message: cleanText(primitiveText(thrown), maxChars) }
  const message = read(thrown, 'message')
  // Errors are often rebuilt as plain objects, by worker threads and RPC clients.
  if (!isError(thrown) && typeof message !== 'string') {
    return { name: 'NonError', message: cleanText(thrown, maxChars) }
  }
  const name = read(thrown, 'name')
  return {
    name: typeof name === 'string' && name !== '' ? cleanText(name, NAME_CHARS) : 'Error',
    message: message === undefined ? '(no readable message)' : cleanText(message, maxChars),
  }
}

/** A bare "undefined" or an empty line in a dashboard does not show that it is the thrown value. */
function primitiveText(thrown: unknown): string {
  if (typeof thrown === 'string') return thrown === '' ? 'an empty string was thrown' : thrown
  return `${String(thrown)} was thrown`
}

function codeOf(thrown: unknown): string | null {
  const code = isObject(thrown) ? read(thrown, 'code') : undefined
  return typeof code === 'string' || typeof code === 'number' ? cleanText(code, NAME_CHARS) : null
}

/** Put the members into the message: Node's AggregateError for a refused connection has an empty one. */
function withMembers(thrown: unknown, message: string): string {
  const { total, first } = membersOf(thrown)
  if (first.length === 0) return message
  const count = total > first.length ? `${total} errors, the first ${first.length}` : `${total} errors`
  const list = first.map((member) => headline(member)).join('; ')
  return cleanText(`${message} (${count}: ${list})`.trimStart(), MESSAGE_CHARS)
}

function headline(thrown: unknown): string {
  const { name, message } = headOf(thrown, RELATED_MESSAGE_CHARS)
  return `${name}: ${message}`
}

function membersOf(thrown: unknown): { readonly total: number; readonly first: readonly unknown[] } {
  const members = isError(thrown) && isAggregate(thrown) ? read(thrown, 'errors') : undefined
  if (!isObject(members) || attempt(() => Array.isArray(members)) !== true) return { total: 0, first: [] }
  const total = Number(attempt(() => Number(read(members, 'length'))))
  const first: unknown[] = []
  for (let index = 0; index < total && index < MAX_RELATED; index++) first.push(read(members, String(index)))
  return { total, first }
}

/** By name for other realms. Not by an `errors` field alone: validation errors carry plain data under that name. */
function isAggregate(error: Error): boolean {
  return attempt(() => error instanceof AggregateError) === true || read(error, 'name') === 'AggregateError'
}

function stackOf(thrown: unknown): string | null {
  if (!isObject(thrown)) return null
  const related = [...memberStacks(thrown), ...causeStacks(thrown)]
  const own = read(thrown, 'stack')
  if (related.length === 0) return typeof own === 'string' && own !== '' ? cleanText(own, STACK_CHARS) : null
  return cleanText([stackText(thrown, OWN_STACK_CHARS), ...related].join('\n'), STACK_CHARS)
}

function memberStacks(thrown: object): string[] {
  const { total, first } = membersOf(thrown)
  return first.map(
    (member, index) => `Error ${index + 1} of ${total}: ${stackText(member, RELATED_STACK_CHARS)}`,
  )
}

function causeStacks(thrown: object): string[] {
  const stacks: string[] = []
  const seen = new Set<unknown>([thrown])
  let cause = read(thrown, 'cause')
  while (cause !== undefined && cause !== null && !seen.has(cause) && stacks.length < MAX_RELATED) {
    stacks.push(`Caused by: ${stackText(cause, RELATED_STACK_CHARS)}`)
    seen.add(cause)
    cause = isObject(cause) ? read(cause, 'cause') : undefined
  }
  return stacks
}

function stackText(thrown: unknown, maxChars: number): string {
  const stack = isObject(thrown) ? read(thrown, 'stack') : undefined
  return cleanText(typeof stack === 'string' && stack !== '' ? stack : headline(thrown), maxChars)
}

function isObject(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function'
}

function read(target: object, key: string): unknown {
  return attempt(() => (target as Record<string, unknown>)[key])
}
