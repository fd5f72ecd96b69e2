/**
 * A fleet in virtual time: one in-memory store, one clock, and any number of processes. Each process is its own holdfast()
 * with a connection to the store that can break in every way a network can. Nothing is mocked: the store is the real one,
 * and faults only occur between it and its caller. At the end of each test everything is closed, and no timer may be left.
 */
import { expect, onTestFinished } from 'vitest'
import type { Core } from '../../src/core/core.ts'
import type { Instrument } from '../../src/core/instrumentation.ts'
import type { QueueConfig } from '../../src/core/settings.ts'
import { holdfast, type Holdfast, type Options } from '../../src/holdfast.ts'
import { Hub } from '../../src/hub.ts'
import { EVENT_NAMES, type Events } from '../../src/job/events.ts'
import type { JobId } from '../../src/job/ids.ts'
import type { JobRecord } from '../../src/job/record.ts'
import { sleep, type Clock } from '../../src/std/clock.ts'
import { seededRandom, type Random } from '../../src/std/random.ts'
import { letPromisesRun, VirtualClock } from '../../src/std/virtual-clock.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import type { Store, WakeUp } from '../../src/stores/store.ts'
import { handingStore } from '../simulation/handing-store.ts'

export { letPromisesRun }

// ── faults ───────────────────────────────────────────────────────────────────

/** What becomes of one call: `perform` takes the step in the real store. */
export type Fault = (perform: () => Promise<unknown>) => Promise<unknown>

const never = new Promise<never>(() => undefined)

/** The request is turned away; nothing happens. */
export const refused: Fault = () => Promise.reject(new Error('connection refused'))
/** The request vanishes and no answer ever comes. */
export const requestLost: Fault = () => never
/** The step is taken, but no answer ever comes. */
export const replyLost: Fault = async (perform) => {
  await perform()
  return never
}
/** The step is taken, and the line breaks before the answer. */
export const replyBroken: Fault = async (perform) => {
  await perform()
  throw new Error('connection reset')
}

export interface Call {
  /** 'cycle', 'upkeep.lead', 'admin.get' … */
  readonly method: string
  readonly args: readonly unknown[]
  readonly atMs: number
}

type Match = string | readonly string[] | ((call: Call) => boolean)

interface Injection {
  readonly matches: (call: Call) => boolean
  readonly fault: Fault
  left: number
}

/** The line between one process and the store. */
export class Line {
  readonly calls: Call[] = []
  /** Hints are best effort: this drops them all. */
  losesHints = false
  readonly #clock: Clock
  #injections: Injection[] = []

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** From now on, or for so many calls. Returns how to end it. */
  fail(match: Match, fault: Fault, times = Infinity): () => void {
    const injection = { matches: matcher(match), fault, left: times }
    this.#injections.push(injection)
    return () => {
      this.#injections = this.#injections.filter((other) => other !== injection)
    }
  }

  /** Every call fails, until the line is mended. */
  breakDown(fault: Fault = refused): void {
    this.fail(() => true, fault)
  }

  mend(): void {
    this.#injections = []
  }

  /** Holds back the answers (or, before they are taken, the steps) of matching calls until `open` is called. */
  hold(match: Match, what: 'reply' | 'request' = 'reply', times = 1): { held(): number; open(): void } {
    const gate = deferred()
    let held = 0
    this.fail(
      match,
      async (perform) => {
        held++
        if (what === 'request') await gate.promise
        const answer = await perform()
        await gate.promise
        return answer
      },
      times,
    )
    return { held: () => held, open: () => gate.resolve() }
  }

  callsTo(method: string): readonly Call[] {
    return this.calls.filter((call) => call.method === method)
  }

  carry(method: string, args: readonly unknown[], perform: () => Promise<unknown>): Promise<unknown> {
    const call = { method, args, atMs: this.#clock.monotonicMs() }
    this.calls.push(call)
    const injection = this.#injections.find((one) => one.left > 0 && one.matches(call))
    if (injection === undefined) return perform()
    injection.left--
    return injection.fault(perform)
  }
}

function matcher(match: Match): (call: Call) => boolean {
  if (typeof match === 'function') return match
  const methods = typeof match === 'string' ? [match] : match
  return ({ method }) => methods.includes(method)
}

// ── processes ────────────────────────────────────────────────────────────────

/** A process's share of the world's time: it can be frozen (SIGSTOP) and killed. */
class ProcessClock implements Clock {
  /** By how much its wall clock is ahead. */
  offMs = 0
  readonly #base: Clock
  readonly #cancels = new Set<() => void>()
  #state: 'awake' | 'frozen' | 'dead' = 'awake'
  #held: (() => void)[] = []
  #thawed = deferred()

  constructor(base: Clock) {
    this.#base = base
  }

  now(): number {
    return this.#base.now() + this.offMs
  }

  monotonicMs(): number {
    return this.#base.monotonicMs()
  }

  after(ms: number, fn: () => void): () => void {
    if (this.#state === 'dead') return () => undefined
    let cancelled = false
    const run = (): void => {
      this.#cancels.delete(cancel)
      if (this.#state === 'frozen') this.#held.push(() => cancelled || fn())
      else fn()
    }
    const callOff = this.#base.after(ms, run)
    const cancel = (): void => {
      cancelled = true
      this.#cancels.delete(cancel)
      callOff()
    }
    this.#cancels.add(cancel)
    return cancel
  }

  freeze(): void {
    this.#state = 'frozen'
    this.#thawed = deferred()
  }

  /** All timers that fell due meanwhile fire first, then the answers that came meanwhile are read: as in Node. */
  thaw(): void {
    this.#state = 'awake'
    for (const fn of this.#held.splice(0)) fn()
    this.#thawed.resolve()
  }

  kill(): void {
    this.#state = 'dead'
    for (const cancel of this.#cancels) cancel()
  }

  /** Resolves when the process can take notice of something: at once, after the thaw, or never. */
  async awake(): Promise<void> {
    if (this.#state === 'frozen') await this.#thawed.promise
    if (this.#state === 'dead') await never
  }
}

/** The store as one process sees it. Closing it closes the line, not the store that others share. */
function storeOver(real: Store, line: Line, clock: ProcessClock, extras: Pick<Store, 'keepAlive'>): Store {
  let closed = false
  const through = (method: string, args: readonly unknown[], perform: () => Promise<unknown>) => {
    if (closed) return Promise.reject(new Error('this line to the store is closed'))
    return line.carry(method, args, perform).then(
      async (answer) => (await clock.awake(), answer),
      async (error: unknown) => (await clock.awake(), Promise.reject(error as Error)),
    )
  }
  const wrap = <F extends object>(facet: F, prefix: string): F =>
    new Proxy(facet, {
      get(target, name: string) {
        const member = Reflect.get(target, name) as unknown
        if (typeof member !== 'function') return member
        return (...args: readonly unknown[]) =>
          through(prefix + name, args, () => Reflect.apply(member, target, args) as Promise<unknown>)
      },
    })
  const facets: Partial<Store> = {
    ...extras,
    upkeep: wrap(real.upkeep, 'upkeep.'),
    schedules: wrap(real.schedules, 'schedules.'),
    notes: wrap(real.notes, 'notes.'),
    admin: wrap(real.admin, 'admin.'),
    subscribe: async (listener) => {
      const hear = (hint: WakeUp): void => {
        if (!line.losesHints) void clock.awake().then(() => listener(hint))
      }
      const perform = (): Promise<unknown> => real.subscribe(hear)
      const stop = (await through('subscribe', [listener], perform)) as () => Promise<void>
      return async () => void (await through('unsubscribe', [], stop))
    },
    close: async () => {
      await through('close', [], () => Promise.resolve())
      closed = true
    },
  }
  const core = wrap(real, '')
  return new Proxy(core, { get: (target, name) => Reflect.get(facets, name) ?? Reflect.get(target, name) })
}

/** What a process told of itself, in order. */
export class Told {
  readonly all: { readonly name: keyof Events; readonly event: Events[keyof Events] }[] = []

  constructor(hf: Pick<Holdfast<string, object>, 'on'>) {
    for (const name of EVENT_NAMES) hf.on(name, (event) => void this.all.push({ name, event }))
  }

  of<Name extends keyof Events>(name: Name): Events[Name][] {
    return this.all.filter((one) => one.name === name).map((one) => one.event as Events[Name])
  }

  /** The names of the events about one job. */
  about(id: string): (keyof Events)[] {
    return this.all.filter(({ event }) => 'id' in event && event.id === id).map(({ name }) => name)
  }
}

export interface Process<Q extends string> {
  readonly hf: Holdfast<Q, object>
  readonly line: Line
  readonly told: Told
  readonly clock: Clock
  /** Sets its wall clock wrong, ahead or (negative) behind. */
  readonly setClockOff: (ms: number) => void
  readonly freeze: () => void
  readonly thaw: () => void
  /** kill -9: nothing of it ever runs again. */
  readonly kill: () => void
}

// ── the world ────────────────────────────────────────────────────────────────

export interface WorldOptions {
  /** Whether the store hands jobs over as they are enqueued. */
  readonly handsOver?: boolean
}

export class VirtualWorld {
  readonly clock = new VirtualClock()
  readonly random: Random
  /** The store itself, past all lines. */
  readonly store: Store
  /** By how much the store's clock is ahead. */
  storeOffMs = 0
  readonly #alive = new Set<Process<string>>()

  constructor(seed = 1, { handsOver = false }: WorldOptions = {}) {
    this.random = seededRandom(seed)
    const clock = { now: () => this.clock.now() + this.storeOffMs }
    const store = memoryStore({ clock, random: this.random })
    this.store = handsOver ? handingStore(store, clock.now) : store
    onTestFinished(async () => {
      await this.run(Promise.all([...this.#alive].map(({ hf }) => hf.close().catch(() => undefined))))
      expect(this.clock.nextDueMs(), 'a timer is left after close').toBeUndefined()
    })
  }

  /** `extras`: what the store of this process has besides, past the line. */
  process<const Queues extends Record<string, QueueConfig> = { default: QueueConfig }>(
    options: Options<Queues> = {},
    extras: Pick<Store, 'keepAlive'> = {},
  ): Process<Extract<keyof Queues, string>> {
    const hf = holdfast({ logger: false, ...options })
    const clock = new ProcessClock(this.clock)
    const line = new Line(clock)
    const { random } = this
    const store = storeOver(this.store, line, clock, extras)
    Hub.of(hf).core.moveTo({ store, clock, random })
    const process: Process<Extract<keyof Queues, string>> = {
      hf,
      line,
      clock,
      told: new Told(hf),
      setClockOff: (ms) => void (clock.offMs = ms),
      freeze: () => clock.freeze(),
      thaw: () => clock.thaw(),
      kill: () => {
        clock.kill()
        this.#alive.delete(process)
      },
    }
    this.#alive.add(process)
    return process
  }

  get nowMs(): number {
    return this.clock.monotonicMs()
  }

  advance(ms = 0): Promise<void> {
    return this.clock.advance(ms)
  }

  /** Moves the time on until the promise is settled; gives back what it came to. */
  async run<T>(work: Promise<T>, limitMs?: number): Promise<T> {
    let settled = false
    const note = (): void => void (settled = true)
    work.then(note, note)
    await this.until(() => settled, limitMs)
    return work
  }

  /** Moves the time on until the fact holds; how long that took. */
  async until(fact: () => boolean, limitMs = 3_600_000): Promise<number> {
    const sinceMs = this.nowMs
    const came = await this.clock.advanceUntil(fact, limitMs)
    if (!came) throw new Error(`within ${limitMs} ms it did not come true: ${fact.toString()}`)
    return this.nowMs - sinceMs
  }

  /** A job as the store has it. */
  async record(id: string): Promise<JobRecord> {
    const record = await this.store.admin.get(id as JobId)
    if (record === null) throw new Error(`job ${id} is not in the store`)
    return record
  }

  /** How many jobs of all queues are in each state that has any. */
  async counts(): Promise<Partial<Record<JobRecord['state'], number>>> {
    const counts: Partial<Record<JobRecord['state'], number>> = {}
    for (const queue of await this.store.admin.queues())
      for (const [state, count] of Object.entries(queue.counts) as [JobRecord['state'], number][])
        if (count > 0) counts[state] = (counts[state] ?? 0) + count
    return counts
  }
}

/** A world with one process in it. */
export function alone<const Queues extends Record<string, QueueConfig> = { default: QueueConfig }>(
  options: Options<Queues> = {},
  extras: Pick<Store, 'keepAlive'> = {},
): Process<Extract<keyof Queues, string>> & { readonly world: VirtualWorld } {
  const world = new VirtualWorld()
  return { world, ...world.process(options, extras) }
}

/** What a process shares among its parts, for tests of a part alone. */
export function coreOf(hf: Holdfast<string, object>): Core {
  return Hub.of(hf).core
}

/** Adds an instrument around the attempts and enqueues of a process; returns how to remove it. */
export function instrument(hf: Holdfast<string, object>, added: Instrument): () => void {
  return coreOf(hf).instrumentation.add(added)
}

// ── small things ─────────────────────────────────────────────────────────────

export interface Deferred<T> {
  readonly promise: Promise<T>
  resolve(value: T): void
  reject(error: unknown): void
}

export function deferred<T = void>(): Deferred<T> {
  let resolve!: (value: T) => void
  let reject!: (error: unknown) => void
  const promise = new Promise<T>((yes, no) => {
    resolve = yes
    reject = no
  })
  return { promise, resolve, reject }
}

/** For handlers: takes so long by the clock, or ends at once with the signal's reason. */
export function busy(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return sleep(clock, ms, signal)
}

/** The error that a promise was rejected with. */
export async function thrownBy(work: Promise<unknown>): Promise<unknown> {
  try {
    await work
  } catch (error) {
    return error
  }
  throw new Error('it was not rejected')
}
