/**
 * Memory shared by the main thread and the thread that renews leases, because messages do not arrive while the event
 * loop is blocked. One block per worker, never reused: a late renewal cannot count for another incarnation. Times are
 * of `threadMs()`, in whole microseconds.
 */
const SENT = 0
const TURNED = 1
const PATIENCE = 2
const TIMES = 3

const GONE = 0
const FLAGS = 2

/** More kinds of jobs than this in one worker are counted under the last name. */
const NAMES = 64
const NAME_BYTES = 64
const OTHERS = 'others'

const FLAGS_AT = TIMES * 8
const COUNTS_AT = FLAGS_AT + FLAGS * 4
const NAMES_AT = COUNTS_AT + NAMES * 4
const BYTES = NAMES_AT + NAMES * NAME_BYTES

export class PulseMemory {
  readonly buffer: SharedArrayBuffer
  // Integers, through Atomics: a plain 64-bit number may be read half written.
  readonly #times: BigInt64Array
  readonly #flags: Int32Array
  /** Number of running jobs of each name. */
  readonly #counts: Int32Array
  readonly #names: Uint8Array
  /** Position of each name; known to the side that writes. */
  readonly #places = new Map<string, number>()

  constructor(buffer: SharedArrayBuffer = new SharedArrayBuffer(BYTES)) {
    this.buffer = buffer
    this.#times = new BigInt64Array(buffer, 0, TIMES)
    this.#flags = new Int32Array(buffer, FLAGS_AT, FLAGS)
    this.#counts = new Int32Array(buffer, COUNTS_AT, NAMES)
    this.#names = new Uint8Array(buffer, NAMES_AT, NAMES * NAME_BYTES)
  }

  /** When the newest renewal that was answered had been sent; 0 before the first. */
  get sentMs(): number {
    return this.#time(SENT)
  }

  set sentMs(ms: number) {
    this.#setTime(SENT, ms)
  }

  /** Time of the main loop's last turn. */
  get turnedMs(): number {
    return this.#time(TURNED)
  }

  set turnedMs(ms: number) {
    this.#setTime(TURNED, ms)
  }

  get patienceMs(): number {
    return this.#time(PATIENCE)
  }

  set patienceMs(ms: number) {
    this.#setTime(PATIENCE, ms)
  }

  /** Whether the store does not know the worker. */
  get gone(): boolean {
    return Atomics.load(this.#flags, GONE) === 1
  }

  setGone(): void {
    Atomics.store(this.#flags, GONE, 1)
  }

  /** A job of that name has started or ended. */
  count(name: string, change: 1 | -1): void {
    Atomics.add(this.#counts, this.#places.get(name) ?? this.#place(name), change)
  }

  /** The running jobs, for people: 'resize, mail (3)'. */
  get running(): string {
    return Array.from(this.#counts.keys(), (place) => this.#describe(place))
      .filter((text) => text !== '')
      .join(', ')
  }

  /** A new name is written before it is counted, so that it is never read half-written. */
  #place(name: string): number {
    const place = Math.min(this.#places.size, NAMES - 1)
    this.#places.set(name, place)
    const text = Buffer.from(place === NAMES - 1 ? OTHERS : name).subarray(0, NAME_BYTES)
    this.#names.set(text, place * NAME_BYTES)
    return place
  }

  #describe(place: number): string {
    const count = Atomics.load(this.#counts, place)
    if (count <= 0) return ''
    const text = Buffer.from(this.#names.slice(place * NAME_BYTES, (place + 1) * NAME_BYTES))
    const name = text.toString().replace(/\0+$/, '')
    return count === 1 ? name : `${name} (${count})`
  }

  #time(at: number): number {
    return Number(Atomics.load(this.#times, at)) / 1_000
  }

  #setTime(at: number, ms: number): void {
    Atomics.store(this.#times, at, BigInt(Math.round(ms * 1_000)))
  }
}
