/** Loads that last: producers that run until they are told to stop. */
import { setTimeout as sleep } from 'node:timers/promises'
import { NORMAL, SMALL_BYTES, type Calls, type KeepWaiting, type Payload } from '../protocol.ts'
import type { Library } from './contender.ts'
import type { Pads } from './pads.ts'
import { nowMs } from './tally.ts'

/** A call for fewer jobs than this waits for more of them. */
const PORTION = 100
const TICK_MS = 1
const FIRST_JOBS = 50
const FIRST_GAP_MS = 20
/** A steady producer sends what is due so often. */
const STEADY_TICK_MS = 10

/** At each rate for a second; one that falls behind does not catch up. Resolves to how many were sent. */
export async function pace(
  library: Library,
  pads: Pads,
  { perSecond, level }: Parameters<Calls['startPacing']>[0],
  stopped: () => boolean,
): Promise<number> {
  const underWay = new UnderWay()
  const beganMs = nowMs()
  let sent = 0
  while (!stopped()) {
    const rate = perSecond[Math.floor((nowMs() - beganMs) / 1_000) % perSecond.length] ?? 1
    // Not in step with anybody's polling; and a timer of less than a millisecond waits for one.
    const gapMs = (1_000 / rate) * (0.5 + Math.random())
    const atOnce = Math.max(1, Math.round(1.5 / gapMs))
    for (let count = 0; count < atOnce; count++) {
      const payload: Payload = { sentMs: nowMs(), pad: pads.one(SMALL_BYTES) }
      underWay.add(library.enqueue(payload, { level, delayMs: 0 }))
      sent++
    }
    await sleep(gapMs * atOnce)
  }
  await underWay.all()
  return sent
}

/**
 * Exactly at this rate over time: every 10 ms what is due, in one call. With a call for each job graphile-worker fell
 * behind (359 a second in one 6 s run on a busy machine), and its waits measured only the queue in front of it. Resolves
 * to how many were sent.
 */
export async function holdSteady(
  library: Library,
  pads: Pads,
  { perSecond, bytes }: Parameters<Calls['startSteady']>[0],
  stopped: () => boolean,
): Promise<number> {
  const underWay = new UnderWay()
  const beganMs = nowMs()
  let sent = 0
  while (!stopped()) {
    const due = Math.floor(((nowMs() - beganMs) / 1_000) * perSecond)
    const payloads = Array.from({ length: due - sent }, () => pads.timed(nowMs(), bytes))
    if (payloads.length > 0) underWay.add(library.enqueueMany(payloads, { level: NORMAL, delayMs: 0 }))
    sent = due
    await sleep(STEADY_TICK_MS)
  }
  await underWay.all()
  return sent
}

/**
 * One bulk call at a time for all that is missing, so a producer that is slow sends more at once. The first jobs come
 * one by one, as they do to a server that has just been set up: what is planned then, for tables of a few rows, stays.
 */
export async function keepWaiting(
  library: Library,
  pads: Pads,
  { jobs, bytes, sampleEvery }: KeepWaiting,
  { started, stopped }: { readonly started: () => number; readonly stopped: () => boolean },
): Promise<void> {
  let sent = 0
  for (; sent < FIRST_JOBS && !stopped(); sent++) {
    await library.enqueue({ pad: pads.one(bytes) }, { level: NORMAL, delayMs: 0 })
    await sleep(FIRST_GAP_MS)
  }
  while (!stopped()) {
    const missing = jobs - (sent - started())
    if (missing < PORTION) {
      await sleep(TICK_MS)
      continue
    }
    const atMs = nowMs()
    const payloads = Array.from({ length: missing }, (_, index) =>
      (sent + index) % sampleEvery === 0 ? pads.timed(atMs, bytes) : { pad: pads.one(bytes) },
    )
    sent += missing
    await library.enqueueMany(payloads, { level: NORMAL, delayMs: 0 })
  }
}

/** Calls that were sent and not answered; the first that fails fails all. */
class UnderWay {
  readonly #calls = new Set<Promise<void>>()
  #failed: { readonly error: unknown } | undefined

  add(call: Promise<void>): void {
    if (this.#failed !== undefined) throw this.#failed.error
    const watched = call.then(
      () => void this.#calls.delete(watched),
      (error: unknown) => {
        this.#failed ??= { error }
      },
    )
    this.#calls.add(watched)
  }

  async all(): Promise<void> {
    await Promise.all(this.#calls)
    if (this.#failed !== undefined) throw this.#failed.error
  }
}
