/** Counts the outcomes of a change, for stores and for callers. */
import type { JobId } from '../job/ids.ts'
import type { ChangeCounts, ChangeOutcome, JobChange } from './facets.ts'
import type { Store } from './store.ts'

const IS_CHANGED: Readonly<Record<ChangeOutcome, boolean>> = {
  cancelled: true,
  requested: true,
  heard: true,
  replayed: true,
  discarded: true,
  edited: true,
  running: false,
  final: false,
  not_dead: false,
  not_final: false,
  key_held: false,
}

export function countOutcomes(outcomes: Iterable<ChangeOutcome>): ChangeCounts {
  const counts: Partial<Record<ChangeOutcome, number>> = {}
  for (const outcome of outcomes) counts[outcome] = (counts[outcome] ?? 0) + 1
  return counts
}

/** Number of changed jobs, and of those that matched but were left unchanged. */
export function totalsOf(counts: ChangeCounts): { readonly changed: number; readonly skipped: number } {
  let [changed, skipped] = [0, 0]
  for (const [outcome, count] of Object.entries(counts) as [ChangeOutcome, number][])
    if (IS_CHANGED[outcome]) changed += count
    else skipped += count
  return { changed, skipped }
}

/** Changes one job; returns its outcome, or `missing`. */
export async function changeOne(
  { admin }: Pick<Store, 'admin'>,
  id: JobId,
  change: JobChange,
): Promise<ChangeOutcome | 'missing'> {
  const { outcomes } = await admin.change({ ids: [id] }, change, 1, null)
  const [outcome = 'missing'] = Object.keys(outcomes) as ChangeOutcome[]
  return outcome
}
