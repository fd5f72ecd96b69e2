/** Runs the duties, each in its own loop, while this process leads. */
import type { Core } from '../core/core.ts'
import { Bell } from '../std/bell.ts'
import { sleep } from '../std/clock.ts'
import { toError } from '../std/text.ts'
import { deadLetterWatch, type EnqueueTogether } from './dead-letters.ts'
import type { Duty } from './duty.ts'
import { Leader } from './leader.ts'
import { promoter } from './promoter.ts'
import { pruner } from './pruner.ts'
import { rescuer } from './rescuer.ts'
import { scheduler } from './scheduler.ts'

const LONGEST_TERM_MS = 10_000
const AFTER_FAILURE_MS = 1_000

interface DutyLoop {
  readonly duty: Duty
  readonly bell: Bell
}

export class Maintenance {
  readonly #core: Core
  readonly #leader: Leader
  readonly #loops: readonly DutyLoop[]
  readonly #electionBell: Bell
  #stopped = false
  #done: Promise<void> | undefined
  /** When the next job announced by a hint is due: one timer for all. */
  #expectedMs = Infinity
  #cancelExpected: (() => void) | undefined

  constructor(core: Core, leaseMs: number, enqueue: EnqueueTogether) {
    this.#core = core
    // A dead leader must be replaced well before the leases of its process expire.
    this.#leader = new Leader(core, Math.min(LONGEST_TERM_MS, leaseMs / 2))
    this.#electionBell = new Bell(core.clock)
    const duties = [
      promoter(core),
      rescuer(core, this.#leader, leaseMs),
      pruner(core),
      scheduler(core),
      deadLetterWatch(core, enqueue),
    ]
    this.#loops = duties.map((duty) => ({ duty, bell: new Bell(core.clock) }))
  }

  start(): void {
    this.#done = this.#run()
  }

  async stop(): Promise<void> {
    if (this.#stopped) return
    this.#stopped = true
    this.#electionBell.ring()
    for (const { bell } of this.#loops) bell.ring()
    await this.#done
  }

  async #run(): Promise<void> {
    await this.#leader.elect()
    // Nothing waits for the hints: without them, the promoter still looks every second.
    const subscribing = this.#core.store
      .subscribe({ due: ({ inMs }) => this.#expect(inMs) })
      .catch((error: unknown) => this.#core.connection.report('subscribe to wake-ups', error))
    await Promise.all([this.#holdElections(), ...this.#loops.map((loop) => this.#perform(loop))])
    this.#cancelExpected?.()
    const unsubscribe = await subscribing
    if (unsubscribe !== undefined) await unsubscribe()
    await this.#leader.resign()
  }

  /** A job is due before the promoter's next check. */
  #expect(inMs: number): void {
    const [promoting] = this.#loops
    if (this.#stopped || !this.#leader.leads || promoting === undefined) return
    const { clock } = this.#core
    const atMs = clock.monotonicMs() + inMs
    if (atMs >= this.#expectedMs) return
    this.#cancelExpected?.()
    this.#expectedMs = atMs
    this.#cancelExpected = clock.after(inMs, () => {
      this.#expectedMs = Infinity
      promoting.bell.ring()
    })
  }

  async #holdElections(): Promise<void> {
    while (!this.#stopped) {
      await this.#electionBell.wait(this.#leader.intervalMs * (0.9 + this.#core.random.float() * 0.1))
      if (this.#stopped) return
      const led = this.#leader.leads
      await this.#leader.elect()
      if (!led && this.#leader.leads) for (const { bell } of this.#loops) bell.ring()
    }
  }

  async #perform({ duty, bell }: DutyLoop): Promise<void> {
    const { clock, events } = this.#core
    while (!this.#stopped) {
      let againInMs = AFTER_FAILURE_MS
      if (this.#leader.leads) {
        try {
          againInMs = (await duty.run()).againInMs
        } catch (error) {
          if (!this.#stopped) events.emit('duty.failed', { duty: duty.name, error: toError(error) })
        }
      }
      if (this.#stopped) return
      if (againInMs > 0) await bell.wait(againInMs)
      else await sleep(clock, 0)
    }
  }
}
