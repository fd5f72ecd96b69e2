/**
 * A time zone as stretches of constant offset, read from Node's zone data. The offset comes from formatting local
 * times; the end of a stretch from probing every few days, then bisecting to the second.
 */

/** From `startMs` to before `endMs` local time is UTC plus `offsetMs`. */
export interface Stretch {
  readonly startMs: number
  readonly endMs: number
  readonly offsetMs: number
  /** The previous offset; the same if the start is not the first instant with this offset. */
  readonly beforeMs: number
}

const DAY_MS = 86_400_000
/** No stretch of any zone is shorter than twice this (the shortest since 1990: 7 days). */
const STEP_MS = 3 * DAY_MS
/** A stretch is cut off here if the offset stays the same for longer. */
const AHEAD_MS = 800 * DAY_MS
/** No local time repeats after longer than this. */
const BACK_MS = 2 * DAY_MS
const PARTS = /(\d+)\/(\d+)\/(\d+), (\d+):(\d+):(\d+)/

export class Zone {
  readonly #format: Intl.DateTimeFormat
  /** The last result: schedules ask for times in order. */
  #last: Stretch | undefined

  private constructor(format: Intl.DateTimeFormat) {
    this.#format = format
  }

  /** Null for an unknown zone. */
  static find(name: string): Zone | null {
    try {
      return new Zone(
        new Intl.DateTimeFormat('en-US', {
          timeZone: name,
          calendar: 'gregory',
          numberingSystem: 'latn',
          hourCycle: 'h23',
          year: 'numeric',
          month: 'numeric',
          day: 'numeric',
          hour: 'numeric',
          minute: 'numeric',
          second: 'numeric',
        }),
      )
    } catch {
      return null
    }
  }

  /** The stretch that contains an instant, or the part of it that matters. */
  stretchAt(atMs: number): Stretch {
    const last = this.#last
    if (last !== undefined && last.startMs <= atMs && atMs < last.endMs) return last
    const offsetMs = this.#offsetAt(atMs)
    const startMs = this.#startOf(atMs, offsetMs)
    const beforeMs = this.#offsetAt(startMs - 1000)
    this.#last = { startMs, endMs: this.#endOf(atMs, offsetMs), offsetMs, beforeMs }
    return this.#last
  }

  #offsetAt(atMs: number): number {
    const instant = Math.floor(atMs / 1000) * 1000
    const [, month, day, year, hour, minute, second] = PARTS.exec(this.#format.format(instant)) ?? []
    const local = Date.UTC(
      Number(year),
      Number(month) - 1,
      Number(day),
      Number(hour),
      Number(minute),
      Number(second),
    )
    return local - instant
  }

  #endOf(atMs: number, offsetMs: number): number {
    for (let fromMs = atMs; fromMs < atMs + AHEAD_MS; fromMs += STEP_MS) {
      if (this.#offsetAt(fromMs + STEP_MS) !== offsetMs)
        return firstSecond(fromMs, fromMs + STEP_MS, (ms) => this.#offsetAt(ms) !== offsetMs)
    }
    return atMs + AHEAD_MS
  }

  #startOf(atMs: number, offsetMs: number): number {
    for (let toMs = atMs; toMs > atMs - BACK_MS; toMs -= DAY_MS) {
      if (this.#offsetAt(toMs - DAY_MS) !== offsetMs)
        return firstSecond(toMs - DAY_MS, toMs, (ms) => this.#offsetAt(ms) === offsetMs)
    }
    return atMs - BACK_MS
  }
}

/** The first whole second for which it holds: it does not hold at `fromMs`, and holds from some point up to `toMs`. */
function firstSecond(fromMs: number, toMs: number, isSo: (ms: number) => boolean): number {
  let [no, yes] = [Math.floor(fromMs / 1000), Math.ceil(toMs / 1000)]
  while (yes - no > 1) {
    const middle = Math.floor((no + yes) / 2)
    if (isSo(middle * 1000)) yes = middle
    else no = middle
  }
  return yes * 1000
}
