/** The workload: jobs whose payload says how their handler behaves, and clients that enqueue, cancel and replay them. */
import { Fatal, type EnqueueOptions, type Holdfast } from '../../../src/index.ts'
import { Hub } from '../../../src/hub.ts'
import type { JobId } from '../../../src/job/ids.ts'
import { sleep, systemClock } from '../../../src/std/clock.ts'
import { seededRandom, type Random } from '../../../src/std/random.ts'
import type { Store } from '../../../src/stores/store.ts'
import type { History } from '../../support/recorded-store.ts'
import { anything, type Behaviour } from './behaviour.ts'

type Hf = Holdfast<'default', object>

export function defineWork(hf: Hf, history: History, node: string, onFinished: () => void) {
  return hf.job({
    name: 'work',
    input: anything<Behaviour>(),
    retry: { attempts: 3, delay: 100, maxDelay: 400, crashes: 20 },
    run: ({ input, job, fence, signal }) =>
      history
        .run(node, { job, fence, input }, async () => {
          await sleep(systemClock, input.ms, signal)
          if (input.fails < job.attempt) return 'done'
          throw input.fatal ? new Fatal('hopeless') : new Error('went wrong')
        })
        .finally(onFinished),
  })
}

const MEAN_PAUSE_MS = 15
/** Maximum number of calls in flight per client. They would pile up while the store is down. */
const MOST_CALLS = 60

const ACTS = [...Array.from({ length: 20 }, () => 'enqueue' as const), 'cancel', 'cancel', 'replay'] as const

/** A call that failed, as the application sees it. */
export interface Failure {
  readonly what: 'enqueue' | 'cancel' | 'replay'
  readonly error: unknown
}

/** Enqueues until it is stopped, and sometimes cancels or replays a job. */
export class Client {
  acked = 0
  readonly failures: Failure[] = []
  readonly #hf: Hf
  /** The store of `hf`, for what it does not offer. */
  readonly #store: Store | undefined
  readonly #job: ReturnType<typeof defineWork>
  readonly #node: string
  readonly #random: Random
  readonly #underWay = new Set<Promise<void>>()
  readonly #recent: string[] = []
  readonly #onFailure: () => void
  readonly #living: Promise<void>
  #stopped = false
  #intents = 0

  constructor(hf: Hf, history: History, node: string, onFailure = (): void => undefined, store?: Store) {
    this.#store = store
    this.#onFailure = onFailure
    this.#hf = hf
    this.#node = node
    this.#random = seededRandom(Math.floor(Math.random() * 2 ** 32))
    this.#job = defineWork(hf, history, node, () => undefined)
    this.#living = this.#live()
  }

  /** Enqueues one plain job at once. */
  async enqueue(options: EnqueueOptions<'default'> = {}): Promise<string> {
    return this.#send({ intent: this.#nextIntent(), ms: 1, fails: 0, fatal: false }, options)
  }

  /** Enqueues many keys in random order, in one flush and due later. Resolves to the jobs that hold the keys. */
  async enqueueKeyed(keys: readonly string[]): Promise<readonly string[]> {
    const shuffled = [...keys].sort(() => this.#random.float() - 0.5)
    const items = shuffled.map((key) =>
      this.#job.with(
        { intent: this.#nextIntent(), ms: 1, fails: 0, fatal: false },
        { in: 500, unique: { key, onConflict: 'replace' } },
      ),
    )
    const { ids, inserted } = await this.#hf.enqueueMany(items)
    this.acked += inserted
    return ids
  }

  /** Cancels them all in one step. */
  async cancelAll(ids: readonly string[]): Promise<void> {
    const filter = { ids: ids as readonly JobId[] }
    await this.#store?.admin.change(filter, { type: 'cancel', reason: null }, ids.length, null)
  }

  async pauseAndResume(): Promise<void> {
    await this.#hf.pause('default')
    await this.#hf.resume('default')
  }

  /** Makes no new calls, and waits for those in flight, each of which ends at its deadline. */
  async stop(): Promise<void> {
    this.#stopped = true
    await this.#living
    await Promise.all(this.#underWay)
  }

  async #live(): Promise<void> {
    while (!this.#stopped) {
      await sleep(systemClock, MEAN_PAUSE_MS * 2 * this.#random.float())
      if (this.#underWay.size >= MOST_CALLS) continue
      const act = this.#act().finally(() => this.#underWay.delete(act))
      this.#underWay.add(act)
    }
  }

  async #act(): Promise<void> {
    const recent = this.#recent.length === 0 ? undefined : this.#pick(this.#recent)
    const what = recent === undefined ? 'enqueue' : this.#pick(ACTS)
    try {
      if (recent === undefined || what === 'enqueue') await this.#enqueueAny()
      else if (what === 'cancel') await (await this.#job.get(recent))?.cancel('not needed')
      else await this.#replay(recent)
    } catch (error) {
      this.failures.push({ what, error })
      this.#onFailure()
    }
  }

  async #replay(id: string): Promise<void> {
    await Hub.of(this.#hf).core.store.replay({ ids: [id as JobId] }, null)
  }

  async #enqueueAny(): Promise<void> {
    const behaviour: Behaviour = {
      intent: this.#nextIntent(),
      ms: Math.round(this.#random.float() * 30),
      fails: this.#pick([0, 0, 0, 0, 1, 2, 3]),
      fatal: this.#chance(0.1),
    }
    this.#recent.push(await this.#send(behaviour, this.#options()))
    if (this.#recent.length > 30) this.#recent.shift()
  }

  async #send(behaviour: Behaviour, options: EnqueueOptions<'default'>): Promise<string> {
    const { id, duplicate } = await this.#job.enqueue(behaviour, options)
    if (!duplicate) this.acked++
    return id
  }

  #options(): EnqueueOptions<'default'> {
    const hold = this.#pick([{ while: 'ready' }, { while: 'unfinished' }, { for: '1s' }] as const)
    const unique = {
      key: `key-${Math.floor(this.#random.float() * 5)}`,
      onConflict: this.#pick(['ignore', 'replace', 'reschedule'] as const),
      ...hold,
    }
    return {
      priority: this.#pick(['urgent', 'high', 'normal', 'normal', 'low', 'background'] as const),
      ...(this.#chance(0.3) ? { in: Math.round(this.#random.float() * 800) } : {}),
      ...(this.#chance(0.3) ? { unique } : {}),
    }
  }

  #nextIntent(): string {
    return `${this.#node}-${this.#intents++}`
  }

  #chance(probability: number): boolean {
    return this.#random.float() < probability
  }

  #pick<T>(choices: readonly T[]): T {
    return choices[Math.floor(this.#random.float() * choices.length)] as T
  }
}
