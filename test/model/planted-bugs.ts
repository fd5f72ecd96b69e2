/**
 * Stores with one small bug each, of the kinds that lose jobs in practice. If the model test passed one of them, its other
 * passes would prove nothing.
 */
import type { FlushId, JobId, Token, WorkerId } from '../../src/job/ids.ts'
import { makeIds } from '../../src/job/ids.ts'
import type { NewJob } from '../../src/job/record.ts'
import { seededRandom } from '../../src/std/random.ts'
import type { ClaimRequest, CycleAnswer, CycleRequest, SettleAnswer, Store } from '../../src/stores/store.ts'
import { totalsOf } from '../../src/stores/changes.ts'

type Plant = (store: Store) => Store

/** The store with its `cycle` answered differently. */
function answering(store: Store, change: (answer: CycleAnswer) => CycleAnswer): Store {
  return { ...store, cycle: async (request) => change(await store.cycle(request)) }
}

/** The store with its `cycle` asked differently. */
function asking(store: Store, change: (request: CycleRequest) => CycleRequest): Store {
  return { ...store, cycle: (request) => store.cycle(change(request)) }
}

function answerInstead(from: SettleAnswer, to: SettleAnswer): Plant {
  return (store) =>
    answering(store, (answer) => ({
      ...answer,
      settled: answer.settled.map((one) => (one === from ? to : one)),
    }))
}

function claimInstead(change: (claim: ClaimRequest) => ClaimRequest): Plant {
  return (store) =>
    asking(store, (request) => ({ ...request, claim: request.claim === null ? null : change(request.claim) }))
}

function jobInstead(change: (job: NewJob) => NewJob): Plant {
  return (store) => ({
    ...store,
    enqueue: (flush) => store.enqueue({ ...flush, jobs: flush.jobs.map(change) }),
  })
}

/** Whoever has the token may settle with it. */
const unfenced: Plant = (store) => {
  const owners = new Map<Token, WorkerId>()
  return {
    ...store,
    cycle: async (request) => {
      const [first] = request.settle
      const worker = (first && owners.get(first.token)) ?? request.worker
      const answer = await store.cycle({ ...request, worker })
      for (const { token } of answer.leases) owners.set(token, worker)
      return answer
    },
  }
}

const writesRepeatedFlushes: Plant = (store) => {
  const ids = makeIds({ now: () => 1_000 }, seededRandom(3))
  const seen = new Set<FlushId>()
  return {
    ...store,
    enqueue: async (flush) => {
      if (!seen.has(flush.id)) {
        seen.add(flush.id)
        return store.enqueue(flush)
      }
      await store.enqueue({ id: ids.flush(), jobs: flush.jobs.map((job) => ({ ...job, id: ids.job() })) })
      return store.enqueue(flush)
    },
  }
}

/** A slow rescuer that does not look whether the worker has come back. */
const rescuesTheLiving: Plant = (store) => {
  const registered: WorkerId[] = []
  return {
    ...store,
    register: async (worker, leaseMs) => {
      await store.register(worker, leaseMs)
      registered.push(worker)
    },
    upkeep: {
      ...store.upkeep,
      rescue: async (limit) => {
        const last = registered.at(-1)
        const alive = last !== undefined && (await store.heartbeat({ worker: last, undelivered: [] })).alive
        if (alive) await store.retire(last)
        const answer = await store.upkeep.rescue(limit)
        if (alive) await store.register(last, 60_000)
        return answer
      },
    },
  }
}

const fencesByExpiry: Plant = (store) => ({
  ...store,
  cycle: async (request) => {
    await store.upkeep.rescue(1_000)
    return store.cycle(request)
  },
})

const revivesTheRescued: Plant = (store) => ({
  ...store,
  heartbeat: async (request) => {
    const answer = await store.heartbeat(request)
    if (answer.alive) return answer
    await store.register(request.worker, 60_000)
    return store.heartbeat(request)
  },
})

const forgetsCancelRequests: Plant = (store) => ({
  ...store,
  admin: {
    ...store.admin,
    change: async (filter, change, limit, after) => {
      const [id, ...others] = filter.ids ?? []
      const isOne = change.type === 'cancel' && id !== undefined && others.length === 0
      const record = isOne ? await store.admin.get(id) : null
      if (record?.state === 'running') return { outcomes: { requested: 1 }, next: null, looked: 1 }
      return store.admin.change(filter, change, limit, after)
    },
  },
})

/** A read that is not one snapshot misses jobs on the move. */
const losesJobsOnTheMove: Plant = (store) => ({
  ...store,
  admin: {
    ...store.admin,
    queues: async () =>
      (await store.admin.queues()).map((status) => {
        const { counts } = status
        return counts.running < 2 ? status : { ...status, counts: { ...counts, running: counts.running - 1 } }
      }),
  },
})

const skipsJobsInBulk: Plant = (store) => ({
  ...store,
  admin: {
    ...store.admin,
    change: async (filter, action, limit, after) => {
      const answer = await store.admin.change(filter, action, limit, after)
      const next: JobId | null = totalsOf(answer.outcomes).changed > 1 ? null : answer.next
      return { ...answer, next }
    },
  },
})

export const PLANTED_BUGS: Readonly<Record<string, Plant>> = {
  'tells a worker that its lost settle was written': answerInstead('lost', 'written'),
  'says that a repeated settle was written': answerInstead('already', 'written'),
  'tells a worker that its own settled position is lost': answerInstead('already', 'lost'),
  'lets anybody settle who has the token': unfenced,
  'does not count the attempt of a claim': (store) =>
    answering(store, (answer) => ({
      ...answer,
      leases: answer.leases.map((lease) => ({
        ...lease,
        jobs: lease.jobs.map((job) => ({ ...job, attempt: job.attempt - 1 })),
      })),
    })),
  'mixes up the positions of a lease': (store) =>
    answering(store, (answer) => ({
      ...answer,
      leases: answer.leases.map((lease) => ({ ...lease, jobs: lease.jobs.toReversed() })),
    })),
  'claims more than it was asked for': claimInstead((claim) => ({ ...claim, limit: claim.limit + 1 })),
  'hands suspects to everybody': claimInstead((claim) => ({ ...claim, suspects: true })),
  'uses up an attempt for a snooze': (store) =>
    asking(store, (request) => ({
      ...request,
      settle: request.settle.map((one) =>
        one.settlement.type === 'snooze' && one.settlement.error !== null
          ? { ...one, settlement: { ...one.settlement, type: 'retry' as const, error: one.settlement.error } }
          : one,
      ),
    })),
  'writes a repeated flush again': writesRepeatedFlushes,
  'frees a key when its job is claimed': jobInstead((job) => ({
    ...job,
    unique: job.unique && { ...job.unique, hold: { while: 'ready' } },
  })),
  'frees a timed key too early': jobInstead((job) => ({
    ...job,
    unique:
      job.unique && 'forMs' in job.unique.hold ? { ...job.unique, hold: { forMs: 90_000 } } : job.unique,
  })),
  'takes a time in the past for a head start': jobInstead((job) => ({
    ...job,
    due: 'atMs' in job.due ? { inMs: -1 } : job.due,
  })),
  'ignores a pause': (store) => ({ ...store, admin: { ...store.admin, setPaused: async () => undefined } }),
  'forgets cancels of running jobs': forgetsCancelRequests,
  'rescues the living': rescuesTheLiving,
  'fences by expiry instead of by rescue': fencesByExpiry,
  'brings rescued workers back to life': revivesTheRescued,
  'keeps undelivered leases': (store) => ({
    ...store,
    heartbeat: ({ worker }) => store.heartbeat({ worker, undelivered: [] }),
  }),
  'has two leaders': (store) => ({
    ...store,
    upkeep: {
      ...store.upkeep,
      lead: async (candidate, ttlMs) => (await store.upkeep.lead(candidate, ttlMs)) || true,
    },
  }),
  'prunes beyond its limit': (store) => ({
    ...store,
    upkeep: { ...store.upkeep, prune: (retention, limit) => store.upkeep.prune(retention, limit + 1) },
  }),
  'miscounts its queues': losesJobsOnTheMove,
  'stops a bulk change half way': skipsJobsInBulk,
}
