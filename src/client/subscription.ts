/**
 * A subscription as the store keeps it: a note that only this file reads. It contains everything that a job of the
 * subscriber needs, so a publisher need not have the subscriber's code.
 */
import { HoldfastError } from '../errors.ts'
import type { PreparedEvent } from '../job/domain-event.ts'
import type { JobId } from '../job/ids.ts'
import { matches } from '../job/pattern.ts'
import type { Due, NewJob } from '../job/record.ts'
import type { Note } from '../stores/store.ts'

/** What a job of it has, whichever the event. */
export type SubscriberTemplate = Omit<NewJob, 'id' | 'name' | 'payload' | 'envelope' | 'due' | 'unique'>

export interface StoredSubscription {
  readonly name: string
  readonly patterns: readonly string[]
  readonly job: SubscriberTemplate
}

const VERSION = 1
const NOW: Due = Object.freeze({ inMs: 0 })

export function writeSubscription({ patterns, job }: Omit<StoredSubscription, 'name'>): string {
  return JSON.stringify({ v: VERSION, patterns, job })
}

/** An unreadable subscription is refused, not skipped: its subscriber would silently miss the event. */
export function readSubscription({ id, text }: Note): StoredSubscription {
  const { v, patterns, job } = JSON.parse(text) as { v: number } & StoredSubscription
  if (v === VERSION) return { name: id, patterns, job }
  throw new HoldfastError('HF_SCHEMA_TOO_NEW', `Subscriber "${id}" was stored by a newer version.`)
}

export function hears({ patterns }: StoredSubscription, event: string): boolean {
  return patterns.some((pattern) => matches(pattern, event))
}

/** Spelled out, not spread, and as an enqueue does it: this is done for every job of every event. */
export function jobFor({ name, job }: StoredSubscription, event: PreparedEvent, id: JobId): NewJob {
  const { payload, envelope } = event
  const { queue, priority, headStartMs, maxAttempts, maxCrashes, group, limits } = job
  return {
    id,
    name,
    queue,
    payload,
    priority,
    headStartMs,
    maxAttempts,
    maxCrashes,
    group,
    limits,
    envelope,
    due: NOW,
    unique: null,
  }
}
