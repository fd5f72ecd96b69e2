/**
 * Checks the shape of a store that was passed in, so that a missing part is reported at once and not at its first use.
 */
import { HoldfastError } from '../errors.ts'
import { isThenable } from '../std/thenable.ts'
import type { Store } from './store.ts'

type MethodsOf<Part> = {
  [
    Name in keyof Part as Extract<Part[Name], (...args: never) => unknown> extends never ? never : Name
  ]-?: Part[Name]
}

/** Each method of a part, with whether a store may lack it. Forgetting one does not compile. */
type Table<Part> = {
  readonly [Name in keyof MethodsOf<Required<Part>>]: undefined extends Part[Name & keyof Part]
    ? 'optional'
    : 'required'
}

type FacetName = {
  [Name in keyof Store]-?: NonNullable<Store[Name]> extends object
    ? NonNullable<Store[Name]> extends (...args: never) => unknown
      ? never
      : Name
    : never
}[keyof Store]

const CORE: Table<Store> = {
  open: 'required',
  close: 'required',
  enqueue: 'required',
  register: 'required',
  retire: 'required',
  cycle: 'required',
  heartbeat: 'required',
  keepAlive: 'optional',
  subscribe: 'required',
}

const FACETS: { readonly [Name in FacetName]: Table<NonNullable<Store[Name]>> } = {
  upkeep: { promote: 'required', rescue: 'required', prune: 'required', lead: 'required' },
  schedules: { put: 'required', list: 'required', fire: 'required' },
  notes: { put: 'required', list: 'required' },
  admin: {
    get: 'required',
    list: 'required',
    queues: 'required',
    setPaused: 'required',
    change: 'required',
    deadGroups: 'required',
  },
  transactions: { commit: 'required', enqueueSync: 'optional' },
}

/** Facets that a store may lack as a whole. */
const OPTIONAL_FACETS: ReadonlySet<string> = new Set<FacetName>(['transactions'])

/** Every method of the contract, by name: `cycle`, `upkeep.promote` … */
export const CONTRACT: readonly string[] = [
  ...Object.keys(CORE),
  ...Object.entries(FACETS).flatMap(([facet, methods]) =>
    Object.keys(methods).map((name) => `${facet}.${name}`),
  ),
]

export function checkStore(store: unknown): asserts store is Store {
  if (typeof store !== 'object' || store === null)
    throw bad(`The store must be a URL or an object, not ${describe(store)}.`)
  if (isThenable(store)) throw bad('The store is a promise.', 'Await it first: holdfast({ store: await … }).')
  const given = store as Readonly<Record<string, unknown>>
  const missing = missingIn('', given, CORE)
  if (typeof given['kind'] !== 'string') missing.unshift('kind')
  for (const [facet, methods] of Object.entries(FACETS)) {
    const part = given[facet]
    if (part === undefined && OPTIONAL_FACETS.has(facet)) continue
    if (typeof part !== 'object' || part === null) missing.push(facet)
    else missing.push(...missingIn(`${facet}.`, part as Readonly<Record<string, unknown>>, methods))
  }
  if (missing.length > 0) throw bad(`The store object has no ${missing.join(', ')}.`)
}

function missingIn(
  prefix: string,
  part: Readonly<Record<string, unknown>>,
  methods: Readonly<Record<string, 'required' | 'optional'>>,
): string[] {
  return Object.entries(methods).flatMap(([name, need]) => {
    const isThere = typeof part[name] === 'function' || (need === 'optional' && part[name] === undefined)
    return isThere ? [] : [`${prefix}${name}()`]
  })
}

function describe(value: unknown): string {
  return value === null ? 'null' : typeof value === 'function' ? 'a function' : `a ${typeof value}`
}

function bad(message: string, hint = HINT): HoldfastError {
  return new HoldfastError('HF_BAD_STORE', message, { hint })
}

const HINT =
  "Pass a URL, a store such as postgresStore({ … }), or an object that implements Store of 'holdfast/store' and passes the suite of 'holdfast/store/conformance'."
