/** The store of a build, for what the library's own object does not offer: lists, claims by hand, bulk cancels. */
import { randomUUID } from 'node:crypto'
import type * as PostgresLibrary from 'holdfast/postgres'
import type * as RedisLibrary from 'holdfast/redis'
import type { Store } from 'holdfast/store'

type WorkerId = Parameters<Store['register']>[0]
type CycleRequest = Parameters<Store['cycle']>[0]

const LEASE_MS = 600_000
const COMPLETED = { type: 'completed', result: null, resultDropped: false } as const

export async function openStore(build: string, url: string): Promise<Store> {
  const beside = (path: string): string => new URL(path, build).href
  if (url.startsWith('redis')) {
    const { redisStore } = (await import(beside('stores/redis/index.js'))) as typeof RedisLibrary
    return redisStore({ url })
  }
  const { postgresStore } = (await import(beside('stores/postgres/index.js'))) as typeof PostgresLibrary
  return postgresStore({ url })
}

async function newWorker(store: Store): Promise<WorkerId> {
  const worker = randomUUID() as WorkerId
  await store.register(worker, LEASE_MS)
  return worker
}

/** Holds jobs as a worker that runs them does: so many leases, until the process ends. */
export async function hold(store: Store, queue: string, leases: number, size: number): Promise<void> {
  const worker = await newWorker(store)
  for (let count = 0; count < leases; count++)
    await store.cycle({ worker, settle: [], claim: { queue, limit: size, suspects: false } })
}

/** Completes all jobs of a queue, a few in each lease, as many small claims do. */
export async function drainSmall(store: Store, queue: string, size: number): Promise<void> {
  const worker = await newWorker(store)
  let settle: CycleRequest['settle'] = []
  for (;;) {
    const { leases } = await store.cycle({ worker, settle, claim: { queue, limit: size, suspects: false } })
    settle = leases.flatMap(({ token, jobs }) =>
      jobs.map((_, position) => ({ token, position, settlement: COMPLETED, runMs: 1 })),
    )
    if (settle.length === 0) return
  }
}
