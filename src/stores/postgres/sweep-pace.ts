/**
 * When one queue is swept, and how much of it at a time. While a sweep costs next to nothing, a claim sweeps everything
 * below the marks along with its own look. If a sweep costs more than that, because an old transaction keeps deleted
 * rows in the index, claims stop sweeping: separate scans go through the ranks window by window.
 */
import { nextPause, type Backoff } from '../../std/backoff.ts'

/** Ranks by time, without the head start. Null for the end: up to the marks. */
export interface Window {
  readonly start: number
  readonly end: number | null
}

/** Below and above any rank: a head start is worth ten years per level at most. */
export const LOWEST = -1e15
export const HIGHEST = 1e15

export const EVERYTHING: Window = { start: LOWEST, end: null }

const EVERY_MS = 250
/** A sweep may take a tenth of the time. */
const COST_SHARE = 10
/** A claim that knows of no lane cannot sweep by windows, so it may wait longer. */
const AT_LATEST_MS = 5_000
const AT_LATEST_WITHOUT_LANES_MS = 30_000
/** If a sweep costs a claim more than this, windows take over. */
const CLAIM_COST_MS = 10
/**
 * A window may take a tenth of the time since the last one, within these bounds. One that takes longer is halved the
 * next time, one that takes less than a quarter of it is doubled.
 */
const LEAST_WINDOW_COST_MS = 25
const MOST_WINDOW_COST_MS = 100
const SMALLEST_WINDOW_MS = 10
/** A sweep that fails after this long was probably given up because it had too much to read. */
const TOO_SLOW_MS = 500
/** Between separate scans that fail because of a bug or a missing right. */
const FAILURE_BACKOFF: Backoff = { firstMs: 1_000, longestMs: 60_000 }
/** Windows divide at most this much time. What is older belongs to the first one. */
const OLDEST_WINDOW_MS = 86_400_000

/** The part of the ranks that jobs were claimed from, as times. */
export interface Span {
  /** How many lanes are known. */
  readonly lanes: number
  /** The newest of their marks; LOWEST if it is not known. */
  readonly newest: number
}

export class SweepPace {
  #nextMs = 0
  /** Wake-ups may have been lost before the look after this one: it sweeps everything. */
  #missedAt = -1
  /** Duration of a claim without a sweep; undefined until there was one. */
  #usualMs: number | undefined
  /** A sweep took long, but the usual duration is unknown: claim once without a sweep first. */
  #mustCompare = false
  /** Infinity: claims sweep everything. */
  #windowMs = Infinity
  #cursor = LOWEST
  /** The upper end of the last sweep that cost next to nothing: below it there are few dead rows. */
  #cleanUpTo = LOWEST
  #underWay = false
  #lastWindowMs = 0
  /** The pause after the last failure that another try could not help; 0 if there was none. */
  #failurePauseMs = 0

  /** Anything may have come in anywhere since this look. */
  missed(look: number): void {
    this.#missedAt = look
    this.#nextMs = 0
  }

  /** Whether a claim sweeps everything. */
  inClaim(nowMs: number): boolean {
    if (nowMs < this.#nextMs) return false
    return this.#missedAt >= 0 || (this.#windowMs === Infinity && !this.#mustCompare)
  }

  /** A claim was answered. `sure`: nothing can have been left out of its sweep. */
  claimed(span: Span, look: { readonly sweep: boolean; readonly number: number }, parts: Claimed): void {
    const { tookMs, nowMs, sure } = parts
    if (look.sweep) this.#sweptAll(span, look.number, tookMs, nowMs)
    else {
      const usualMs = this.#usualMs
      this.#usualMs = usualMs === undefined ? tookMs : 0.8 * usualMs + 0.2 * tookMs
      this.#mustCompare = false
    }
    if (look.sweep && sure && look.number > this.#missedAt) this.#missedAt = -1
  }

  #sweptAll(span: Span, look: number, tookMs: number, nowMs: number): void {
    const usualMs = this.#usualMs
    // The round trip to the server is not part of the sweep's cost.
    const costMs = Math.max(0, tookMs - (usualMs ?? 0))
    if (usualMs !== undefined) this.#usualMs = Math.min(usualMs, tookMs)
    else this.#mustCompare = tookMs > CLAIM_COST_MS
    const all = this.#length(span)
    if (costMs <= CLAIM_COST_MS) {
      this.#cleanUpTo = span.newest
      this.#windowMs = Infinity
    } else if (this.#windowMs === Infinity && all > 0) {
      this.#windowMs = Math.max(all / 4, SMALLEST_WINDOW_MS)
    }
    this.#startRound(nowMs)
    // Wake-ups were lost since this look began: the next one sweeps, however soon.
    if (this.#missedAt < look) this.#nextMs = nowMs + pauseMs(span, costMs)
  }

  /** The call of a claim that swept everything failed. If that was too much for one statement, windows take over. */
  claimFailed(span: Span, tookMs: number, nowMs: number): void {
    this.#nextMs = nowMs + pauseMs(span, tookMs)
    const all = this.#length(span)
    if (tookMs < TOO_SLOW_MS || span.lanes === 0 || !(all > 0)) return
    // A round of windows looks at everything too.
    this.#missedAt = -1
    this.#startRound(nowMs)
    this.#windowMs = Math.max(Math.min(this.#windowMs, all) / 4, SMALLEST_WINDOW_MS)
  }

  /** The window to sweep now in a separate scan: one at a time. */
  nextWindow(span: Span, nowMs: number): Window | null {
    if (this.#underWay || this.#windowMs === Infinity || this.#missedAt >= 0 || nowMs < this.#nextMs)
      return null
    if (span.lanes === 0) {
      this.#windowMs = Infinity
      return null
    }
    this.#underWay = true
    const start = this.#cursor
    const end = Math.max(start, this.#oldest(span)) + this.#windowMs
    return { start, end: end < span.newest ? end : null }
  }

  /** `tookMs` by the server's clock. `workers`: all of the fleet, which sweep a tenth of the time together. */
  swept(span: Span, window: Window, { tookMs, workers, nowMs }: Swept): void {
    this.#underWay = false
    this.#failurePauseMs = 0
    const mostMs = Math.max((nowMs - this.#lastWindowMs) / COST_SHARE, LEAST_WINDOW_COST_MS)
    const budgetMs = Math.min(mostMs, MOST_WINDOW_COST_MS)
    if (tookMs > budgetMs) this.#windowMs = Math.max(this.#windowMs / 2, SMALLEST_WINDOW_MS)
    else if (tookMs < budgetMs / 4) this.#windowMs *= 2
    this.#lastWindowMs = nowMs
    this.#nextMs = Math.max(this.#nextMs, nowMs + Math.max(EVERY_MS, COST_SHARE * tookMs * workers))
    if (window.end !== null && window.end < span.newest) {
      this.#cursor = window.end
      return
    }
    this.#startRound(nowMs)
    // One window covers everything again: the dead rows are gone.
    if (this.#windowMs > this.#length(span)) this.#windowMs = Infinity
  }

  windowFailed(tookMs: number, nowMs: number, isLasting: boolean): void {
    this.#underWay = false
    this.#failurePauseMs = isLasting ? nextPause(FAILURE_BACKOFF, this.#failurePauseMs) : 0
    this.#nextMs = nowMs + Math.max(EVERY_MS, COST_SHARE * tookMs, this.#failurePauseMs)
    if (tookMs >= TOO_SLOW_MS) this.#windowMs = Math.max(this.#windowMs / 4, SMALLEST_WINDOW_MS)
  }

  #startRound(nowMs: number): void {
    this.#cursor = LOWEST
    this.#lastWindowMs = nowMs
  }

  /** Where windows begin to divide the time. */
  #oldest({ newest }: Span): number {
    return Math.max(this.#cleanUpTo, newest - OLDEST_WINDOW_MS)
  }

  #length(span: Span): number {
    return span.newest - this.#oldest(span)
  }
}

interface Claimed {
  readonly tookMs: number
  readonly nowMs: number
  readonly sure: boolean
}

interface Swept {
  readonly tookMs: number
  readonly workers: number
  readonly nowMs: number
}

function pauseMs({ lanes }: Span, costMs: number): number {
  const latestMs = lanes === 0 ? AT_LATEST_WITHOUT_LANES_MS : AT_LATEST_MS
  return Math.min(Math.max(EVERY_MS, COST_SHARE * costMs), latestMs)
}
