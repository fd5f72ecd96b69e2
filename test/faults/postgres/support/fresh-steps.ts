/** Every kind of statement that workers, clients and the upkeep send, as steps that can be taken again and again. */
import { makeIds, type JobId, type WorkerId } from '../../../../src/job/ids.ts'
import type { NewJob } from '../../../../src/job/record.ts'
import type { Settlement } from '../../../../src/job/settlement.ts'
import type { UniqueClaim } from '../../../../src/job/unique.ts'
import { systemClock } from '../../../../src/std/clock.ts'
import { systemRandom } from '../../../../src/std/random.ts'
import {
  CANCELLED,
  COMPLETED,
  DEAD,
  cancelOne,
  editOne,
  newJob,
  RELEASE,
  retention,
  retry,
} from '../../../../src/stores/conformance/support.ts'
import type { Lease, Retention, Store } from '../../../../src/stores/store.ts'

/** In one statement. */
export const JOBS = 50
const QUEUE = 'plans'

/** What cancels beyond holdfast.take_waiting: with its settings, looking a job up everywhere took 2 to 3 times as long. */
const LOOKED_UP = ['dead', 'ended', 'history', 'batch', 'lease', 'ready', 'scheduled']

/** Once in a while the pruner looks at whole partitions. */
const PRUNED = ['batch', 'history', 'lease', 'payload']

export interface Step {
  readonly name: string
  readonly run: () => Promise<unknown>
  /** Tables that it may read as a whole. */
  readonly reads?: readonly string[]
}

export class Steps {
  readonly #store: Store
  readonly #change: (ids: readonly JobId[], action: string) => Promise<unknown>
  readonly #ids = makeIds(systemClock, systemRandom)
  readonly #worker: WorkerId = this.#ids.worker()
  #tick = 0

  /** `change`: holdfast.change alone, because a bulk change lists the jobs first. */
  constructor(store: Store, change: (ids: readonly JobId[], action: string) => Promise<unknown>) {
    this.#store = store
    this.#change = change
  }

  async start(): Promise<void> {
    await this.#store.register(this.#worker, 600_000)
    await this.#store.schedules.put('plans', { spec: '{}', nextTick: 1 })
  }

  readonly hot: readonly Step[] = [
    { name: 'enqueue', run: () => this.#enqueue({}) },
    { name: 'enqueue with keys', run: () => this.#enqueueTwice('ignore', { while: 'unfinished' }) },
    { name: 'enqueue with keys, while ready', run: () => this.#enqueueTwice('ignore', { while: 'ready' }) },
    { name: 'replace', run: () => this.#enqueueTwice('replace', { while: 'ready' }) },
    { name: 'reschedule', run: () => this.#enqueueTwice('reschedule', { while: 'unfinished' }) },
    { name: 'enqueue for later', run: () => this.#enqueue({ due: { inMs: 1 } }) },
    { name: 'promote', run: () => this.#store.upkeep.promote(JOBS) },
    { name: 'claim and complete', run: () => this.#work([COMPLETED]) },
    { name: 'claim and settle', run: () => this.#work([COMPLETED, retry(1), DEAD, CANCELLED, RELEASE]) },
    { name: 'claim large payloads', run: () => this.#workOn({ payload: JSON.stringify('x'.repeat(1_000)) }) },
    { name: 'claim keys', run: () => this.#workOn({}, { while: 'unfinished' }) },
    { name: 'claim keys, while ready', run: () => this.#workOn({}, { while: 'ready' }) },
    { name: 'heartbeat', run: () => this.#store.heartbeat({ worker: this.#worker, undelivered: [] }) },
  ]

  readonly rare: readonly Step[] = [
    { name: 'cancel', run: () => this.#cancelEach(), reads: LOOKED_UP },
    { name: 'cancel by bulk', run: () => this.#changeSome('cancel') },
    { name: 'edit', run: () => this.#edit() },
    { name: 'report', run: () => this.#report() },
    { name: 'fire', run: () => this.#fire() },
    { name: 'replay', run: () => this.#changeSome('replay') },
    { name: 'discard', run: () => this.#changeSome('discard') },
    { name: 'undelivered', run: () => this.#releaseUndelivered() },
    // A lease may belong to a worker that there is not any more, and a worker retires with a plain statement.
    { name: 'rescue', run: () => this.#rescue(), reads: ['lease', 'worker'] },
    { name: 'prune', run: () => this.#prune({ completedMs: -1, deadMs: -1 }), reads: PRUNED },
    { name: 'prune by number', run: () => this.#prune({ maxCancelled: 1 }), reads: PRUNED },
  ]

  /** At least so many rows of each kind. */
  async fill(rows: number): Promise<void> {
    await this.start()
    const payload = JSON.stringify('x'.repeat(600))
    for (let done = 0; done < rows; done += JOBS) {
      await this.#enqueue({ queue: 'others', payload })
      await this.#enqueue({ queue: 'others', due: { inMs: 3_600_000 } }, { while: 'unfinished' })
      await this.#enqueue({ queue: 'ended' })
      await this.#settle(await this.#claim('ended'), [COMPLETED, DEAD, CANCELLED, CANCELLED, DEAD])
    }
    // Leases of a worker that is still at it.
    await this.#enqueue({ queue: 'held' })
    for (let lease = 0; lease < JOBS; lease++) await this.#claim('held', 1)
  }

  async #enqueue(parts: Partial<NewJob>, hold?: UniqueClaim['hold']): Promise<readonly NewJob[]> {
    const jobs = Array.from({ length: JOBS }, () => {
      const id = this.#ids.job()
      const unique = hold === undefined ? null : { key: id, hold, onConflict: 'ignore' as const }
      return newJob({ queue: QUEUE, ...parts, id, unique })
    })
    await this.#store.enqueue({ id: this.#ids.flush(), jobs })
    return jobs
  }

  /** The second flush meets the holders of the first. */
  async #enqueueTwice(onConflict: UniqueClaim['onConflict'], hold: UniqueClaim['hold']): Promise<void> {
    const queue = 'keyed'
    const first = await this.#enqueue({ queue }, hold)
    const jobs = first.map(({ id }) =>
      newJob({ queue, id: this.#ids.job(), unique: { key: id, hold, onConflict } }),
    )
    await this.#store.enqueue({ id: this.#ids.flush(), jobs })
  }

  async #claim(queue: string, limit = JOBS, worker = this.#worker): Promise<readonly Lease[]> {
    const claim = { queue, limit, suspects: true }
    return (await this.#store.cycle({ worker, settle: [], claim })).leases
  }

  async #settle(leases: readonly Lease[], ways: readonly Settlement[]): Promise<void> {
    const settle = leases.flatMap(({ token, jobs }) =>
      jobs.map((_, position) => {
        const settlement = ways[position % ways.length] ?? COMPLETED
        return { token, position, settlement, runMs: 1 }
      }),
    )
    await this.#store.cycle({ worker: this.#worker, settle, claim: null })
  }

  async #work(ways: readonly Settlement[]): Promise<void> {
    await this.#settle(await this.#claim(QUEUE), ways)
  }

  /** In a queue of their own, so that these are claimed and not what other steps left behind. */
  async #workOn(parts: Partial<NewJob>, hold?: UniqueClaim['hold']): Promise<void> {
    const queue = `own-${this.#ids.flush()}`
    await this.#enqueue({ ...parts, queue }, hold)
    await this.#settle(await this.#claim(queue), [COMPLETED, RELEASE])
    await this.#settle(await this.#claim(queue), [COMPLETED])
  }

  /** One that waits, one that is claimed, and those that ended in some way. */
  async #cancelEach(): Promise<void> {
    const leases = await this.#some()
    const held = leases.flatMap(({ jobs }) => jobs)
    const later = await this.#enqueue({ due: { inMs: 60_000 } }, { while: 'unfinished' })
    await this.#settle(leases, [COMPLETED, DEAD, CANCELLED])
    const ids = [held[0]?.id, held[1]?.id, held[2]?.id, later[0]?.id, this.#ids.job()]
    for (const id of ids) if (id !== undefined) await cancelOne(this.#store, id, null)
    for (const { id } of (await this.#claim(QUEUE, 2)).flatMap(({ jobs }) => jobs))
      await cancelOne(this.#store, id, null)
  }

  async #some(): Promise<readonly Lease[]> {
    await this.#enqueue({})
    return this.#claim(QUEUE)
  }

  async #changeSome(action: 'cancel' | 'replay' | 'discard'): Promise<void> {
    const leases = await this.#some()
    const ids: JobId[] = leases.flatMap(({ jobs }) => jobs.map(({ id }) => id))
    await this.#settle(leases, action === 'cancel' ? [RELEASE] : [DEAD, COMPLETED, CANCELLED])
    await this.#change(ids, action)
  }

  async #edit(): Promise<void> {
    const [job] = await this.#enqueue({ queue: 'keyed' }, { while: 'ready' })
    await editOne(this.#store, job!.id, { payload: '1' })
    const [later] = await this.#enqueue({ due: { inMs: 60_000 } })
    await editOne(this.#store, later!.id, { due: { inMs: 0 } })
  }

  async #report(): Promise<void> {
    const leases = await this.#some()
    const log = [{ at: 1, level: 'info', message: 'here' }] as never
    const reports = leases.map(({ token }) => ({ token, position: 0, progress: null, log }))
    await this.#store.cycle({ worker: this.#worker, settle: [], claim: null, reports })
    await this.#settle(leases, [COMPLETED])
  }

  async #prune(parts: Partial<Retention>): Promise<void> {
    await this.#store.upkeep.prune(retention(parts), JOBS)
  }

  async #fire(): Promise<void> {
    const tick = ++this.#tick
    const job = newJob({ queue: QUEUE, id: this.#ids.job() })
    await this.#store.schedules.fire('plans', tick, tick + 1, job)
  }

  async #releaseUndelivered(): Promise<void> {
    const undelivered = (await this.#some()).map(({ token }) => token)
    await this.#store.heartbeat({ worker: this.#worker, undelivered })
  }

  async #rescue(): Promise<void> {
    const lost = this.#ids.worker()
    await this.#store.register(lost, 600_000, 2)
    await this.#enqueue({})
    await this.#claim(QUEUE, JOBS, lost)
    await this.#store.retire(lost)
    await this.#store.upkeep.rescue(JOBS)
  }
}
