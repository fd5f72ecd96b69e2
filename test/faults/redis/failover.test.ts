/**
 * A replica takes over. Redis answers before it replicates, so the store promises nothing if a primary dies. These tests
 * show what is lost then, and that a planned failover loses nothing.
 */
import { describe, expect, test } from 'vitest'
import type { JobId } from '../../../src/job/ids.ts'
import {
  COMPLETED,
  newFlushId,
  newJobs,
  newWorkerId,
  settleRequest,
} from '../../../src/stores/conformance/support.ts'
import { redisStore } from '../../../src/stores/redis/index.ts'
import type { Lease, Store } from '../../../src/stores/store.ts'
import { redisMissing } from '../../support/servers/redis.ts'
import { startRedis, type RedisServer } from '../../support/servers/redis-server.ts'
import { PATIENT } from '../support/fleet.ts'
import { until } from '../../support/until.ts'
import { infoOf, withRedis } from './support/commands.ts'
import { setFleet } from './support/stage.ts'

/** A primary, its replica, and an address that leads to one of them, like a DNS entry. */
class Pair {
  readonly primary: RedisServer
  readonly replica: RedisServer
  readonly connection: { readonly host: string; readonly port: number }
  #leadsTo: RedisServer

  private constructor(primary: RedisServer, replica: RedisServer) {
    this.primary = primary
    this.replica = replica
    this.#leadsTo = primary
    const port = (): number => this.#leadsTo.port
    this.connection = {
      host: '127.0.0.1',
      // Read for each new connection.
      get port() {
        return port()
      },
    }
  }

  static async start(): Promise<Pair> {
    // By default a replica waits 5 s in case more replicas connect.
    const settings = { 'repl-diskless-sync-delay': '0' }
    const pair = new Pair(await startRedis({ settings }), await startRedis({ settings }))
    const { primary, replica } = pair
    await withRedis(replica.url, (redis) => redis.replicaof('127.0.0.1', primary.port))
    await pair.untilHeard()
    return pair
  }

  /** Waits until the replica has everything that the primary has now. */
  async untilHeard(): Promise<void> {
    await withRedis(this.primary.url, (redis) =>
      until('the replica to hear of it', async () => {
        const sent = await infoOf(redis, 'master_repl_offset')
        const heard = /state=online,offset=(\d+)/.exec(await infoOf(redis, 'slave0'))?.[1]
        return Number(heard ?? -1) >= Number(sent)
      }),
    )
  }

  lead(server: RedisServer): void {
    this.#leadsTo = server
  }

  async dispose(): Promise<void> {
    await Promise.all([this.primary.dispose(), this.replica.dispose()])
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose()
  }
}

describe.skipIf(redisMissing() !== '')('a failover', PATIENT, () => {
  test('that is planned (FAILOVER) loses nothing, without a restart', async (context) => {
    const pair = await Pair.start()
    const { connection } = pair
    const fleet = await setFleet(
      context,
      { direct: { connection }, line: { connection, commandTimeoutMs: 2_000 } },
      () => pair.dispose(),
    )
    fleet.down()
    await withRedis(pair.primary.url, async (redis) => {
      await redis.call('FAILOVER')
      await until('the replica to take over', async () => (await infoOf(redis, 'role')) === 'slave')
    })
    pair.lead(pair.replica)
    fleet.up()
    await context.annotate(`claims again after ${Math.round(await fleet.reclaimed())} ms`)
    await fleet.progress(30)
    await fleet.judge()
  })

  test('after a crash loses only what the replica had not received, and runs unsettled jobs again', async () => {
    await using pair = await Pair.start()
    const store = redisStore({ connection: pair.connection, onNotice: () => undefined })
    await store.open()
    const worker = newWorkerId()
    await store.register(worker, 60_000)
    const [done, running, waiting, unheard] = [newJobs(2), newJobs(2), newJobs(2), newJobs(2)]
    await store.enqueue({ id: newFlushId(), jobs: [...done, ...running, ...waiting] })
    const first = await claim(store, worker, 2)
    const second = await claim(store, worker, 2)
    await pair.untilHeard()
    await withRedis(pair.replica.url, (redis) => redis.replicaof('NO', 'ONE'))

    // Acknowledged by the primary alone: two completions, a lease, and two new jobs.
    expect(await complete(store, worker, first)).toEqual(['written', 'written'])
    const third = await claim(store, worker, 2)
    await store.enqueue({ id: newFlushId(), jobs: unheard })
    pair.lead(pair.replica)
    await pair.primary.kill()

    const states = async (jobs: readonly { readonly id: JobId }[]): Promise<(string | undefined)[]> =>
      Promise.all(jobs.map(async ({ id }) => (await store.admin.get(id))?.state))
    await until('the replica to answer', () =>
      store.admin.queues().then(
        () => true,
        () => false,
      ),
    )
    expect(await states(unheard)).toEqual([undefined, undefined])
    expect(await states(waiting)).toEqual(['ready', 'ready'])
    expect(await states([...first.jobs, ...second.jobs])).toEqual(Array(4).fill('running'))
    // A repeated settle is written if the replica knows the lease.
    expect(await complete(store, worker, second)).toEqual(['written', 'written'])
    expect(await complete(store, worker, first)).toEqual(['written', 'written'])
    // A lease that the replica does not know settles nothing, and the jobs run again under a later token.
    expect(await complete(store, worker, third)).toEqual(['lost', 'lost'])
    const again = await claim(store, worker, 2)
    expect(again.jobs.map(({ id }) => id)).toEqual(third.jobs.map(({ id }) => id))
    expect(again.token).toBeGreaterThan(third.token)
    // It still settles nothing after later tokens were issued. A lease that ended on the replica is known to have ended.
    expect(await complete(store, worker, third)).toEqual(['lost', 'lost'])
    expect(await complete(store, worker, again)).toEqual(['written', 'written'])
    expect(await complete(store, worker, again)).toEqual(['already', 'already'])
    await store.close()
  })
})

async function claim(store: Store, worker: ReturnType<typeof newWorkerId>, limit: number): Promise<Lease> {
  const request = { queue: 'default', limit, suspects: false }
  const { leases } = await store.cycle({ worker, settle: [], claim: request })
  const [lease] = leases
  if (lease === undefined) throw new Error('Nothing was claimed.')
  return lease
}

async function complete(
  store: Store,
  worker: ReturnType<typeof newWorkerId>,
  { token, jobs }: Lease,
): Promise<readonly string[]> {
  const settle = [...jobs.keys()].map((position) => settleRequest({ token, position }, COMPLETED))
  return (await store.cycle({ worker, settle, claim: null })).settled
}
