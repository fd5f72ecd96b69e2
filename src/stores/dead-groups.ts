/** Groups dead letters by job, queue and error. Groups of several pages can be merged. */
import type { JobRecord } from '../job/record.ts'
import type { DeadGroup } from './store.ts'

/** A group of one job, or none if it is not dead. */
export function groupOf(record: JobRecord): DeadGroup[] {
  if (record.state !== 'dead') return []
  const { id, queue, name, finishedAt, error } = record
  const { fingerprint, kind, message } = error
  return [
    {
      queue,
      name,
      fingerprint,
      count: 1,
      firstAt: finishedAt,
      lastAt: finishedAt,
      newest: id,
      kind,
      message,
    },
  ]
}

/** Merges groups. The largest comes first; among equals, the one that grew last. */
export function mergeGroups(groups: Iterable<DeadGroup>): DeadGroup[] {
  const merged = new Map<string, DeadGroup>()
  for (const group of groups) {
    const key = JSON.stringify([group.queue, group.name, group.fingerprint])
    const before = merged.get(key)
    merged.set(key, before === undefined ? group : sum(before, group))
  }
  return [...merged.values()].sort((a, b) => b.count - a.count || b.lastAt - a.lastAt)
}

function sum(a: DeadGroup, b: DeadGroup): DeadGroup {
  const newer = b.lastAt > a.lastAt || (b.lastAt === a.lastAt && b.newest > a.newest) ? b : a
  return {
    ...newer,
    count: a.count + b.count,
    firstAt: Math.min(a.firstAt, b.firstAt),
    lastAt: Math.max(a.lastAt, b.lastAt),
  }
}
