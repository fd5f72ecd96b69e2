/**
 * The exact JSON writer, for values that the quick check does not accept: iterative, so that no depth overflows the
 * stack, and bounded, so that no oversized text is built. A set of rules decides about each value: strict rules reject
 * it with its path, lossy ones write what can be shown.
 */
import { types } from 'node:util'
import { cleanText, describeError, findFlaw, isError } from './text.ts'

export interface JsonLimits {
  /** UTF-8 bytes of the text. */
  readonly maxBytes: number
  /** Nesting depth of objects and arrays, the outermost included. */
  readonly maxDepth: number
}

/** Why a value cannot be stored as JSON: `path` reads like `$.user.tags[3]`, `fix` says what to pass instead. */
export class JsonRejected extends Error {
  override readonly name = 'JsonRejected'
  readonly path: string
  readonly problem: string
  readonly fix: string
  /** Whether the value exceeds a limit, rather than being impossible in JSON. */
  readonly overLimit: boolean

  constructor(path: string, problem: string, fix: string, overLimit = false) {
    super(`${path} ${problem}. ${fix}`)
    this.path = path
    this.problem = problem
    this.fix = fix
    this.overLimit = overLimit
  }
}

/** `json` is undefined if there is nothing to show, or the text exceeds the limit: then `bytes` is its minimum size. */
export interface JsonText {
  readonly json: string | undefined
  readonly bytes: number
}

const { getPrototypeOf, getOwnPropertyDescriptor, getOwnPropertySymbols, keys: enumerableKeys } = Object

export function measured(json: string, maxBytes: number): JsonText {
  const bytes = Buffer.byteLength(json)
  return { json: bytes > maxBytes ? undefined : json, bytes }
}

export function hasToJson(value: object): value is { toJSON(key: string): unknown } {
  return typeof (value as { readonly toJSON?: unknown }).toJSON === 'function'
}

/** Raw text from JSON.rawJSON (Node 22) has no prototype, and JSON.stringify copies it out as it stands. */
export function isRawJson(value: object): boolean {
  return (JSON as { isRawJSON?: (value: unknown) => boolean }).isRawJSON?.(value) ?? false
}

/**
 * An object or array being written: `owner` is in the value, `source` is what is read for it, such as a Map's entries.
 */
class Branch {
  readonly owner: object
  readonly source: object
  /** Null for a list. */
  readonly keys: readonly string[] | null
  readonly length: number
  next = 0
  empty = true

  constructor(owner: object, source: object = owner) {
    this.owner = owner
    this.source = source
    this.keys = Array.isArray(source) || types.isTypedArray(source) ? null : enumerableKeys(source)
    this.length = Number((this.keys ?? (source as ArrayLike<unknown>)).length)
  }
}

/** Undefined is left out. The path of a JsonRejected is relative to the value; the writer prepends the rest. */
type View = string | number | boolean | null | undefined | Branch | JsonRejected

/** The differences between the strict and the lossy text. A view need not read beyond `room`. */
interface Rules {
  view(value: unknown, key: string, room: number): View
  key(key: string): string | JsonRejected | undefined
  /** For an element without a view. */
  gap(list: object, index: number): View
  cycle(ancestor: () => string): View
  tooDeep(maxDepth: number): View
  threw(error: unknown): View
}

export class Writer {
  readonly #rules: Rules
  readonly #limits: JsonLimits
  readonly #branches: Branch[] = []
  readonly #owners = new Set<object>()
  #text = ''
  /** Minimum size of the text, once it exceeds the limit. */
  #beyond = 0

  constructor(rules: Rules, limits: JsonLimits) {
    this.#rules = rules
    this.#limits = limits
  }

  run(root: unknown): JsonText {
    const view = this.#guarded(() => this.#rules.view(root, '', this.#limits.maxBytes))
    if (view === undefined) return { json: undefined, bytes: 0 }
    this.#write(view, '')
    let branch: Branch | undefined
    while (this.#beyond === 0 && (branch = this.#branches.at(-1)) !== undefined) {
      if (branch.next < branch.length) {
        this.#step(branch)
      } else {
        this.#text += branch.keys === null ? ']' : '}'
        this.#branches.pop()
        this.#owners.delete(branch.owner)
      }
    }
    if (this.#beyond > 0) return { json: undefined, bytes: this.#beyond }
    return measured(this.#text, this.#limits.maxBytes)
  }

  #step(branch: Branch): void {
    const index = branch.next++
    const key = branch.keys === null ? String(index) : (branch.keys[index] as string)
    const room = this.#limits.maxBytes - this.#text.length
    let view = this.#guarded(() => {
      const seen = this.#rules.view((branch.source as Record<string, unknown>)[key], key, room)
      return seen === undefined && branch.keys === null ? this.#rules.gap(branch.source, index) : seen
    })
    if (view === undefined && key !== '__proto__') return
    let prefix = branch.empty ? '' : ','
    if (branch.keys !== null) {
      if (!this.#fits(key.length + 3)) return
      const name = this.#rules.key(key)
      if (name === undefined) return
      if (typeof name === 'string') prefix += `${JSON.stringify(name)}:`
      else view = name
    }
    branch.empty = false
    this.#write(view, prefix)
  }

  #guarded(read: () => View): View {
    try {
      return read()
    } catch (error) {
      return this.#rules.threw(error)
    }
  }

  #write(view: View, prefix: string): void {
    if (view instanceof Branch) return this.#open(view, prefix)
    if (view instanceof JsonRejected) {
      throw new JsonRejected(
        this.#path(this.#branches.length) + view.path,
        view.problem,
        view.fix,
        view.overLimit,
      )
    }
    if (!this.#fits(typeof view === 'string' ? view.length + 2 : 1)) return
    this.#text += prefix + JSON.stringify(view)
  }

  #open(branch: Branch, prefix: string): void {
    const { owner, keys, length } = branch
    const { maxDepth } = this.#limits
    const ancestor = (): string => this.#path(this.#branches.findIndex((open) => open.owner === owner))
    if (this.#owners.has(owner)) return this.#write(this.#rules.cycle(ancestor), prefix)
    if (this.#branches.length >= maxDepth) return this.#write(this.#rules.tooDeep(maxDepth), prefix)
    if (keys === null && !this.#fits(2 * length + 1)) return
    this.#text += prefix + (keys === null ? '[' : '{')
    this.#branches.push(branch)
    this.#owners.add(owner)
  }

  /** Counted in characters, each at least a byte; checked before anything is copied. */
  #fits(chars: number): boolean {
    const bytes = this.#text.length + chars
    if (bytes > this.#limits.maxBytes) this.#beyond = bytes
    return this.#beyond === 0
  }

  #path(depth: number): string {
    const step = ({ keys, next }: Branch): string => segment(keys === null ? next - 1 : keys[next - 1])
    const path = ['$', ...this.#branches.slice(0, depth).map(step)].join('')
    return path.length <= 300 ? path : cleanText(`${path.slice(0, 150)}…${path.slice(-149)}`, 300)
  }
}

function segment(key: string | number = ''): string {
  if (typeof key === 'number') return `[${key}]`
  if (key.length > 60) return `[${JSON.stringify(cleanText(key, 60))}]`
  return /^[A-Za-z_$][\w$]*$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`
}

export const STRICT: Rules = {
  view: strictView,
  key: (key) =>
    key === '__proto__'
      ? reject('is a __proto__ key; it can replace a prototype', 'Rename the key.')
      : (flawed(key, 'has a key with') ?? key),
  gap: (list, index) =>
    reject(`is ${index in list ? 'undefined' : 'a hole'} in an array; JSON would store null`, 'Pass null.'),
  cycle: (ancestor) => reject(`refers back to ${ancestor()}; JSON cannot hold a cycle`, 'Pass an id.'),
  tooDeep: (maxDepth) =>
    new JsonRejected('', `is nested too deep; the limit is ${maxDepth} levels`, 'Pass flatter data.', true),
  threw: (error) => reject(`threw when it was read: ${reasonOf(error)}`, 'Pass data without getters.'),
}

function reject(problem: string, fix: string, path = ''): JsonRejected {
  return new JsonRejected(path, problem, fix)
}

function flawed(text: string, verb: string): JsonRejected | undefined {
  const flaw = findFlaw(text)
  if (flaw === undefined) return undefined
  return reject(`${verb} ${flaw}, which stores cannot hold`, 'Remove it, or pass the bytes as base64.')
}

function strictView(value: unknown, _key: string, room: number): View {
  if (value === null || value === undefined || typeof value === 'boolean') return value
  if (typeof value === 'string') return value.length > room ? value : (flawed(value, 'contains') ?? value)
  if (typeof value === 'object') return strictBranch(value, room)
  if (typeof value === 'bigint') return reject('is a BigInt; JSON cannot hold it', 'Pass String(value).')
  if (typeof value !== 'number') return reject(`is a ${typeof value}; JSON would drop it`, 'Pass data only.')
  if (Number.isFinite(value)) return value
  return reject(`is ${value}; JSON would turn it into null`, 'Pass a finite number, null or a string.')
}

const KINDS: readonly [is: (value: object) => boolean, noun: string, becomes: string, fix: string][] = [
  [types.isDate, 'a Date', 'a string', 'Pass date.toISOString() or date.getTime().'],
  [types.isMap, 'a Map', '{}', 'Pass Object.fromEntries(map) or [...map].'],
  [types.isSet, 'a Set', '{}', 'Pass [...set].'],
  [isError, 'an Error', '{}', 'Pass { name: error.name, message: error.message }.'],
  [types.isRegExp, 'a RegExp', '{}', 'Pass regexp.source.'],
  [types.isPromise, 'a Promise', '{}', 'Await it first.'],
  [(value) => Buffer.isBuffer(value), 'a Buffer', 'an object', "Pass buffer.toString('base64')."],
  [types.isArrayBufferView, 'a typed array', 'an object', 'Pass Array.from(value), or base64 text.'],
  [types.isAnyArrayBuffer, 'an ArrayBuffer', '{}', 'Pass its bytes as base64 text.'],
  [types.isBoxedPrimitive, 'a boxed primitive', 'a primitive', 'Pass value.valueOf().'],
  [types.isArgumentsObject, 'an arguments object', 'an object', 'Pass [...arguments].'],
  [isRawJson, 'raw JSON', 'whatever its text says', 'Pass the value itself.'],
]

function strictBranch(value: object, room: number): View {
  const kind = KINDS.find(([is]) => is(value))
  if (kind !== undefined) return reject(`is ${kind[1]}; JSON would turn it into ${kind[2]}`, kind[3])
  const fix = hasToJson(value) ? 'Pass what its toJSON() returns.' : 'Pass plain data, such as { ...value }.'
  if (!isPlain(value)) {
    const name = cleanText(value.constructor?.name || 'a class', 60)
    return reject(`is an instance of ${name}; JSON would lose its class`, fix)
  }
  if (hasToJson(value)) return reject('has a toJSON method; JSON would store what that returns', fix)
  const symbol = getOwnPropertySymbols(value).find((key) => getOwnPropertyDescriptor(value, key)?.enumerable)
  if (symbol !== undefined) {
    return reject('is a symbol key; JSON would drop it', 'Use a string key.', `[${cleanText(symbol, 60)}]`)
  }
  const branch = new Branch(value)
  // The keys of an oversized array could take gigabytes.
  if (branch.keys !== null || 2 * branch.length > room) return branch
  const extra = enumerableKeys(value).find((key) => !/^\d+$/.test(key) || Number(key) >= branch.length)
  if (extra === undefined) return branch
  return reject('is a property of an array; JSON would drop it', 'Pass an object instead.', segment(extra))
}

/** Also for other realms: Array.prototype is itself an array, which the prototype of a subclass is not. */
function isPlain(value: object): boolean {
  const prototype: unknown = getPrototypeOf(value)
  if (prototype === null) return true
  if (!Array.isArray(value)) return isObjectPrototype(prototype)
  return Array.isArray(prototype) && isObjectPrototype(getPrototypeOf(prototype))
}

/** An Object.prototype of any realm: the end of a chain, with a hidden method that no data object has. */
function isObjectPrototype(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || getPrototypeOf(value) !== null) return false
  return getOwnPropertyDescriptor(value, 'hasOwnProperty')?.enumerable === false
}

function reasonOf(error: unknown): string {
  return cleanText(describeError(error).message, 200)
}

export const LOSSY: Rules = {
  view: lossyView,
  key: (key) => (key === '__proto__' ? undefined : cleanText(key, Infinity)),
  gap: () => null,
  cycle: () => '[Circular]',
  tooDeep: () => '[Too deep]',
  threw: (error) => `[Threw: ${reasonOf(error)}]`,
}

function lossyView(value: unknown, key: string, room: number): View {
  if (value === null || typeof value === 'boolean') return value
  if (typeof value === 'string') return value.length > room ? value : cleanText(value, Infinity)
  if (typeof value === 'number') return Number.isFinite(value) ? value : null
  if (typeof value === 'bigint') return String(value)
  if (typeof value !== 'object') return undefined
  // Before its toJSON: a Buffer's returns an array of numbers, many times the buffer's size.
  if (types.isTypedArray(value) && 2 * value.length > room) return new Branch(value)
  // An error's toJSON is ignored: HTTP clients put whole requests in there, with credentials.
  if (isError(value) || !hasToJson(value)) return contents(value, value)
  const shown = value.toJSON(key)
  return typeof shown === 'object' && shown !== null ? contents(value, shown) : lossyView(shown, key, room)
}

function contents(owner: object, value: object): View {
  if (types.isBoxedPrimitive(value)) return lossyView(value.valueOf(), '', Infinity)
  if (isError(value)) return new Branch(owner, errorFields(value))
  // Not the value's own iterator, which may be endless in a subclass.
  if (types.isSet(value)) return new Branch(owner, [...Set.prototype.values.call(value)])
  if (!types.isMap(value)) return new Branch(owner, value)
  const entries: [unknown, unknown][] = [...Map.prototype.entries.call(value)]
  const isRecord = entries.every(([key]) => typeof key === 'string')
  return new Branch(owner, isRecord ? Object.fromEntries(entries as [string, unknown][]) : entries)
}

function errorFields(error: Error): object {
  const { name, message, code } = describeError(error)
  // Getters run one by one, so that the writer catches one that throws.
  const cause = { get: () => error.cause, enumerable: true }
  return Object.defineProperty({ name, message, code: code ?? undefined }, 'cause', cause)
}
