/**
 * JSON without surprises. `encodeStrict` returns text that JSON.parse turns into an equal value, or reports which part
 * of the value cannot be kept and what to pass instead. `encodeLossy` shows what can be shown of any value and never
 * throws. Neither recurses to the full depth of the value, and neither builds text far beyond its limit of bytes.
 *
 * Both begin with `quick`: a cheap walk that accepts nearly every value, then one JSON.stringify. A writer of our own
 * in one pass was rejected: hardly faster for a small payload, and twice as slow for long arrays. Values that the walk
 * does not accept go to json-writer.ts, which is exact, iterative and slower. The price of reading twice: a getter that
 * returns a different value each time is stored as JSON.stringify sees it, though never with a NUL.
 */
import {
  hasToJson,
  isRawJson,
  JsonRejected,
  LOSSY,
  measured,
  STRICT,
  Writer,
  type JsonLimits,
  type JsonText,
} from './json-writer.ts'

export { JsonRejected, type JsonLimits, type JsonText }

/**
 * The value as JSON text that JSON.parse turns into an equal value; throws JsonRejected for everything that JSON would
 * lose or change. An undefined property is dropped, as JSON does; -0 equals 0.
 */
export function encodeStrict(value: unknown, limits: JsonLimits): string {
  const json = quick(value, limits)
  // No UTF-16 unit takes more than 3 bytes in UTF-8: a short text need not be measured.
  if (json !== undefined && json.length * 3 <= limits.maxBytes) return json
  if (value === undefined)
    throw new JsonRejected('$', 'is undefined; JSON has no such value', 'Pass null or {}.')
  const text = json === undefined ? new Writer(STRICT, limits).run(value) : measured(json, limits.maxBytes)
  if (text.json !== undefined) return text.json
  const problem = `is too large: at least ${text.bytes} bytes as JSON, the limit is ${limits.maxBytes}`
  throw new JsonRejected(
    '$',
    problem,
    'Keep the data in a table or an object store and pass a reference to it.',
    true,
  )
}

/** JSON text of what can be shown of any value; it passes encodeStrict once parsed. Never throws. */
export function encodeLossy(value: unknown, limits: JsonLimits): JsonText {
  try {
    const json = quick(value, limits)
    return json === undefined ? new Writer(LOSSY, limits).run(value) : measured(json, limits.maxBytes)
  } catch (error) {
    // The writer guards every read; only a lack of stack or memory gets here.
    return measured(JSON.stringify(LOSSY.threw(error)), limits.maxBytes)
  }
}

/** Also the depth at which a cycle is noticed, so it is low: the cycle's siblings are walked that often. */
const QUICK_DEPTH = 32

const { getPrototypeOf, getOwnPropertySymbols, keys: enumerableKeys } = Object

/** The text, if it is certain that nothing is lost; undefined says nothing about the value. */
function quick(value: unknown, limits: JsonLimits): string | undefined {
  try {
    if (roomAfter(value, limits.maxBytes, Math.min(limits.maxDepth, QUICK_DEPTH)) < 0) return undefined
    const json = JSON.stringify(value) as string | undefined
    // JSON.stringify escapes NUL and lone surrogates, so one native scan of its text stands for one of every string
    // and key. A backslash in the value itself can look the same; the writer then lets it pass.
    return json?.includes('\\u') === true && /\\u(?:0000|d[89a-f])/.test(json) ? undefined : json
  } catch {
    return undefined
  }
}

/** Bytes of `room` left after the value, by its minimum size; negative if it does not fit or is not plain. */
function roomAfter(value: unknown, room: number, depth: number): number {
  if (typeof value === 'string') return room - value.length - 2
  if (typeof value === 'number') return Number.isFinite(value) ? room - 1 : -1
  if (typeof value === 'boolean' || value === null) return room - 4
  if (typeof value !== 'object' || depth <= 0) return -1
  return Array.isArray(value) ? roomAfterArray(value, room, depth) : roomAfterObject(value, room, depth)
}

function roomAfterArray(array: readonly unknown[], room: number, depth: number): number {
  const { length } = array
  let left = room - 2 * length - 1
  if (left < 0 || getPrototypeOf(array) !== Array.prototype || hasToJson(array)) return -1
  // As many keys as elements: no extra property, or a hole, which the loop finds.
  if (getOwnPropertySymbols(array).length !== 0 || enumerableKeys(array).length !== length) return -1
  for (let index = 0; index < length; index++) {
    left = roomAfter(array[index], left + 1, depth - 1)
    if (left < 0) return -1
  }
  return left
}

function roomAfterObject(object: object, room: number, depth: number): number {
  const prototype: unknown = getPrototypeOf(object)
  if (prototype !== Object.prototype && (prototype !== null || isRawJson(object))) return -1
  if (hasToJson(object) || getOwnPropertySymbols(object).length !== 0) return -1
  let left = room - 2
  // for…in costs a third of Object.keys. If Object.prototype was extended, it also sees inherited keys, and at worst
  // sends a valid value to the writer.
  for (const key in object) {
    if (key === '__proto__') return -1
    const child = (object as Record<string, unknown>)[key]
    if (child === undefined) continue
    left = roomAfter(child, left - key.length - 3, depth - 1)
    if (left < 0) return -1
  }
  return left
}
