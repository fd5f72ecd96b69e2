/** S12: a handler sees the payload that was enqueued, or the one that replaced it while the job waited. */
import { Aging } from '../aging.ts'
import type { Job } from '../book.ts'
import type { HistoryEvent, InvokeEvent, MoveEvent, RunEvent } from '../history.ts'
import type { Rule } from '../rule.ts'
import type { World } from '../world.ts'

export class Payloads implements Rule {
  readonly name = 'S12'
  readonly sees = ['invoke', 'run', 'move'] as const
  readonly #world: World
  /** Unique key → payloads that somebody wanted to put in its holder's place, and how many times each. */
  readonly #replacements = new Map<string, Map<string, number>>()
  readonly #aging = new Aging<{ readonly key: string; readonly payload: string }>()

  constructor(world: World) {
    this.#world = world
  }

  on(event: HistoryEvent): void {
    if (event.type === 'invoke') {
      if (event.call.kind === 'enqueue') this.#noteReplacements(event)
    } else if (event.type === 'run') {
      if (event.payload !== undefined && this.#world.job !== undefined)
        this.#ran(event, event.payload, this.#world.job)
    } else if (event.type === 'move' && event.payload !== undefined) {
      this.#wrote(event, event.payload)
    }
  }

  #noteReplacements({ t, call }: InvokeEvent): void {
    if (call.kind !== 'enqueue') return
    for (const { unique, payload } of call.jobs) {
      if (unique?.onConflict !== 'replace') continue
      const { key } = unique
      let wanted = this.#replacements.get(key)
      if (wanted === undefined) this.#replacements.set(key, (wanted = new Map()))
      wanted.set(payload, (wanted.get(payload) ?? 0) + 1)
      // Without moves a run is all that shows a replacement, and it may come any time later.
      if (this.#world.moves) this.#aging.add(t, { key, payload })
    }
    this.#aging.takeBefore(t - this.#world.bounds.flushMemoryMs, (old) => this.#forget(old))
  }

  #forget({ key, payload }: { readonly key: string; readonly payload: string }): void {
    const wanted = this.#replacements.get(key)
    const count = wanted?.get(payload)
    if (wanted === undefined || count === undefined) return
    if (count > 1) wanted.set(payload, count - 1)
    else wanted.delete(payload)
    if (wanted.size === 0) this.#replacements.delete(key)
  }

  #wrote(event: MoveEvent, payload: string): void {
    const enqueued = this.#world.job?.spec?.payload
    if (event.from === null) {
      if (enqueued !== undefined && enqueued !== payload)
        this.#wrong(event, `${quote(payload)} was written where ${quote(enqueued)} was enqueued`)
    } else if (event.by === 'replace' && !this.#mayReplace(event.unique?.key, payload)) {
      this.#wrong(event, `${quote(payload)} replaced its payload, which nobody asked for`)
    }
  }

  #ran(event: RunEvent, payload: string, job: Job): void {
    if (job.payload === null || payload === job.payload) return
    if (this.#world.moves) {
      // A zombie may have been given what was replaced after its lease was lost.
      if (event.token !== job.token) return
    } else if (this.#mayReplace(job.spec?.unique?.key, payload)) {
      return
    }
    this.#wrong(event, `its handler saw ${quote(payload)} instead of ${quote(job.payload)}`)
  }

  #mayReplace(key: string | undefined, payload: string): boolean {
    return key !== undefined && (this.#replacements.get(key)?.has(payload) ?? false)
  }

  #wrong(event: MoveEvent | RunEvent, text: string): void {
    this.#world.report('S12', event.job, text, [this.#world.job?.flush?.first ?? null, event])
  }

  end(): void {}
}

function quote(payload: string): string {
  return payload.length > 60 ? `${payload.slice(0, 60)}…` : payload
}
