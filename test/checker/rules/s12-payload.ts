/** S12: a handler sees the payload that was enqueued, or the one that replaced it while the job waited. */
import { Aging } from '../aging.ts'
import type { Job } from '../book.ts'
import type { HistoryEvent, InvokeEvent, MoveEvent, RunEvent } from '../history.ts'
import type { Rule } from '../rule.ts'
import type { World } from '../world.ts'

export function payloads(world: World): Rule {
  /** Unique key → payloads that somebody wanted to put in its holder's place, and how many times each. */
  const replacements = new Map<string, Map<string, number>>()
  const aging = new Aging<{ readonly key: string; readonly payload: string }>()

  function on(event: HistoryEvent): void {
    if (event.type === 'invoke') {
      if (event.call.kind === 'enqueue') noteReplacements(event)
    } else if (event.type === 'run') {
      if (event.payload !== undefined && world.job !== undefined) ran(event, event.payload, world.job)
    } else if (event.type === 'move' && event.payload !== undefined) {
      wrote(event, event.payload)
    }
  }

  function noteReplacements({ t, call }: InvokeEvent): void {
    if (call.kind !== 'enqueue') return
    for (const { unique, payload } of call.jobs) {
      if (unique?.onConflict !== 'replace') continue
      const { key } = unique
      let wanted = replacements.get(key)
      if (wanted === undefined) replacements.set(key, (wanted = new Map()))
      wanted.set(payload, (wanted.get(payload) ?? 0) + 1)
      // Without moves a run is all that shows a replacement, and it may come any time later.
      if (world.moves) aging.add(t, { key, payload })
    }
    aging.takeBefore(t - world.bounds.flushMemoryMs, forget)
  }

  function forget({ key, payload }: { readonly key: string; readonly payload: string }): void {
    const wanted = replacements.get(key)
    const count = wanted?.get(payload)
    if (wanted === undefined || count === undefined) return
    if (count > 1) wanted.set(payload, count - 1)
    else wanted.delete(payload)
    if (wanted.size === 0) replacements.delete(key)
  }

  function wrote(event: MoveEvent, payload: string): void {
    const enqueued = world.job?.spec?.payload
    if (event.from === null) {
      if (enqueued !== undefined && enqueued !== payload)
        wrong(event, `${quote(payload)} was written where ${quote(enqueued)} was enqueued`)
    } else if (event.by === 'replace' && !mayReplace(event.unique?.key, payload)) {
      wrong(event, `${quote(payload)} replaced its payload, which nobody asked for`)
    }
  }

  function ran(event: RunEvent, payload: string, job: Job): void {
    if (job.payload === null || payload === job.payload) return
    if (world.moves) {
      // A zombie may have been given what was replaced after its lease was lost.
      if (event.token !== job.token) return
    } else if (mayReplace(job.spec?.unique?.key, payload)) {
      return
    }
    wrong(event, `its handler saw ${quote(payload)} instead of ${quote(job.payload)}`)
  }

  function mayReplace(key: string | undefined, payload: string): boolean {
    return key !== undefined && (replacements.get(key)?.has(payload) ?? false)
  }

  function wrong(event: MoveEvent | RunEvent, text: string): void {
    world.report('S12', event.job, text, [world.job?.flush?.first ?? null, event])
  }

  return { name: 'S12', sees: ['invoke', 'run', 'move'], on, end() {} }
}

function quote(payload: string): string {
  return payload.length > 60 ? `${payload.slice(0, 60)}…` : payload
}
