/** The processes of a run: clients and workers, what is done to them, and how they come and go. */
import type { RunningWorker } from '../../src/index.ts'
import { seededRandom } from '../../src/std/random.ts'
import type { Store } from '../../src/stores/store.ts'
import { remoteStore, type Network } from './network.ts'
import type { RunPlan } from './plan.ts'
import { SimulatedProcess } from './process.ts'
import type { Recorder } from './recorder.ts'
import { between, pick, type World } from './world.ts'
import { Client, defineWork, simulatedHoldfast, tellWorkerOf } from './workload.ts'

interface Member {
  readonly process: SimulatedProcess
  readonly worker: Promise<RunningWorker>
  stopping: boolean
}

export interface FleetParts {
  readonly world: World
  readonly plan: RunPlan
  readonly store: Store
  readonly network: Network
  readonly recorder: Recorder
}

export class Fleet {
  readonly #parts: FleetParts
  #members: Member[] = []
  readonly #clients: SimulatedProcess[] = []
  #names = 0

  constructor(parts: FleetParts) {
    this.#parts = parts
  }

  start(): void {
    const { plan } = this.#parts
    for (let index = 0; index < plan.workers; index++) this.#startWorker()
    for (let index = 0; index < plan.clients; index++) this.#startClient()
  }

  /** Processes that can be frozen or killed right now. */
  get alive(): readonly SimulatedProcess[] {
    return this.#members.map((member) => member.process).filter((process) => process.state === 'alive')
  }

  freeze(process: SimulatedProcess, forMs: number, kind: string): void {
    const { recorder, world } = this.#parts
    recorder.write({ type: 'fault', kind, node: process.name })
    recorder.write({ type: 'node', what: 'frozen', node: process.name })
    process.freeze(forMs)
    world.plan(forMs, null, () => {
      if (process.state !== 'dead') recorder.write({ type: 'node', what: 'thawed', node: process.name })
    })
  }

  /** Kills it, and starts another after a while, as a supervisor would. */
  kill(process: SimulatedProcess, restartInMs: number): void {
    const { recorder, world } = this.#parts
    recorder.write({ type: 'fault', kind: 'kill', node: process.name })
    recorder.write({ type: 'node', what: 'killed', node: process.name })
    process.kill()
    this.#members = this.#members.filter((member) => member.process !== process)
    world.plan(restartInMs, null, () => this.#startWorker())
  }

  /** Stops one in good order (a deploy), and starts another. */
  restart(process: SimulatedProcess): void {
    const { recorder } = this.#parts
    const member = this.#members.find((one) => one.process === process)
    if (member === undefined || member.stopping) return
    recorder.write({ type: 'fault', kind: 'deploy', node: process.name })
    void this.#stop(member).then(() => this.#startWorker())
  }

  async stopAll(): Promise<void> {
    await Promise.all(this.#members.map((member) => this.#stop(member)))
  }

  async #stop(member: Member): Promise<void> {
    const { recorder, plan } = this.#parts
    if (member.stopping) return
    member.stopping = true
    const node = member.process.name
    const worker = await member.worker
    recorder.write({ type: 'stop', what: 'begin', node, graceMs: plan.graceMs })
    await worker.stop({ drain: plan.graceMs })
    recorder.write({ type: 'stop', what: 'end', node })
    recorder.write({ type: 'node', what: 'stopped', node })
    member.process.kill()
    this.#members = this.#members.filter((one) => one !== member)
  }

  #startWorker(): void {
    const { recorder, plan, world } = this.#parts
    const process = this.#process('worker')
    const hf = simulatedHoldfast(plan, process, this.#remote(process), seededRandom(world.random.uint32()))
    defineWork(plan, hf, process, recorder)
    const { concurrency, leaseMs, pollMs, graceMs } = plan
    const begin = (): Promise<RunningWorker> =>
      hf.work({ concurrency, lease: leaseMs, poll: pollMs, grace: graceMs }).catch(() => begin())
    const worker = begin()
    void worker.then((running) => {
      tellWorkerOf(hf, () => running.id)
      // From here on it counts as a worker: how long a start takes while the store is away is nobody's promise.
      const { queues, concurrency: slots } = plan
      recorder.write({ type: 'node', what: 'started', node: process.name, queues, slots, upkeep: true })
    })
    this.#members.push({ process, worker, stopping: false })
  }

  #startClient(): void {
    const { recorder, plan, world } = this.#parts
    const process = this.#process('client')
    const hf = simulatedHoldfast(plan, process, this.#remote(process), seededRandom(world.random.uint32()))
    recorder.write({ type: 'node', what: 'started', node: process.name, queues: [], slots: 0, upkeep: false })
    this.#clients.push(process)
    const client = new Client(plan, process, hf, recorder, seededRandom(world.random.uint32()))
    void client.live(() => world.nowMs)
    // One of them: whoever else says the same later says it by another clock.
    if (this.#clients.length === 1) void client.keepSchedule(() => world.nowMs)
  }

  #process(kind: string): SimulatedProcess {
    const { world, plan } = this.#parts
    const offsetMs = between(world.random, -plan.maxOffsetMs, plan.maxOffsetMs)
    const rate = 1 + between(world.random, -plan.maxDrift, plan.maxDrift)
    return new SimulatedProcess(world, `${kind}-${this.#names++}`, { offsetMs, rate })
  }

  #remote(process: SimulatedProcess): Store {
    const { store, network, recorder, plan } = this.#parts
    return remoteStore(store, network, recorder, process, plan.schedule)
  }

  /** Somebody whom something can be done to. */
  victim(): SimulatedProcess | undefined {
    const { alive } = this
    return alive.length === 0 ? undefined : pick(this.#parts.world.random, alive)
  }
}
