/** What the kill soak asks of a store that keeps no moves. */
import type { JobId } from '../../../src/job/ids.ts'
import type { JobRecord } from '../../../src/job/record.ts'
import type { Store } from '../../../src/stores/store.ts'
import type { HeldJob } from './kill-soak.ts'

export async function heldBy(store: Store, workers: readonly string[]): Promise<HeldJob[]> {
  const { jobs } = await store.admin.list({ states: ['running'], limit: 1_000, after: null })
  return jobs.flatMap((job) =>
    job.state === 'running' && workers.includes(job.worker) ? [{ id: job.id, token: job.token }] : [],
  )
}

export async function areElsewhere(store: Store, jobs: readonly HeldJob[]): Promise<boolean> {
  const found = await Promise.all(jobs.map(({ id }) => store.admin.get(id as JobId)))
  return found.every((job, index) => {
    if (job?.state === 'running') return job.token > (jobs[index]?.token ?? 0)
    return job === null || 'finishedAt' in job
  })
}

export async function* completedIn(
  store: Store,
): AsyncGenerator<JobRecord & { readonly state: 'completed' }> {
  let after: JobId | null = null
  do {
    const page: Awaited<ReturnType<Store['admin']['list']>> = await store.admin.list({
      states: ['completed'],
      limit: 1_000,
      after,
    })
    for (const job of page.jobs) if (job.state === 'completed') yield job
    after = page.next
  } while (after !== null)
}
