/** What every part of one holdfast() shares. Parts read it when they need it and never keep a piece of it. */
import type { JobDefinition } from '../job/definition.ts'
import type { Events } from '../job/events.ts'
import { makeIds, type Ids } from '../job/ids.ts'
import type { QueueRules } from '../job/new-job.ts'
import { notFound } from '../job/not-found.ts'
import type { Clock } from '../std/clock.ts'
import type { Emitter } from '../std/emitter.ts'
import type { Random } from '../std/random.ts'
import type { Store } from '../stores/store.ts'
import { Connection } from './connection.ts'
import { Instrumentation } from './instrumentation.ts'
import { LocalWorkers } from './local-workers.ts'
import type { HoldfastSettings } from './settings.ts'
import { JobRegistry } from './registry.ts'
import { StoreClient } from './store-client.ts'

/** The environment of a Holdfast, which tests replace. */
export interface World {
  readonly store: Store
  readonly clock: Clock
  readonly random: Random
}

export class Core {
  readonly settings: HoldfastSettings
  readonly events: Emitter<Events>
  readonly registry = new JobRegistry()
  readonly localWorkers = new LocalWorkers()
  readonly instrumentation: Instrumentation
  #parts: Parts

  constructor(world: World, settings: HoldfastSettings, events: Emitter<Events>) {
    this.settings = settings
    this.events = events
    this.instrumentation = new Instrumentation(events)
    this.#parts = this.#partsIn(world)
  }

  get clock(): Clock {
    return this.#parts.world.clock
  }

  get random(): Random {
    return this.#parts.world.random
  }

  get ids(): Ids {
    return this.#parts.ids
  }

  /** The calls to the store. */
  get store(): StoreClient {
    return this.#parts.store
  }

  /** The way there. Calls go through `store`, which knows what is safe to repeat. */
  get connection(): Pick<Connection, 'closing' | 'insideCommit' | 'report' | 'close'> {
    return this.#parts.connection
  }

  /** Whether completed jobs are deleted at once. */
  get forgets(): boolean {
    const { completedMs, maxCompleted } = this.settings.retention
    return completedMs === 0 || maxCompleted === 0
  }

  get queues(): QueueRules {
    return this.settings.queues
  }

  definition(name: string): JobDefinition | undefined {
    return this.registry.get(name)
  }

  jobNamed(name: string): JobDefinition {
    const definition = this.registry.get(name)
    if (definition === undefined) throw notFound('job', name)
    return definition
  }

  /** Moves into another world (a virtual clock, a store of its own); returns the way back. What is not given stays. */
  moveTo(world: Partial<World>): () => void {
    const before = this.#parts
    this.#parts = this.#partsIn({ ...before.world, ...world })
    return () => {
      this.#parts = before
    }
  }

  #partsIn(world: World): Parts {
    const { timeoutMs } = this.settings
    const connection = new Connection({ ...world, events: this.events, timeoutMs })
    const ids = makeIds(world.clock, world.random)
    return { world, connection, ids, store: new StoreClient(connection, ids, this.forgets) }
  }
}

interface Parts {
  readonly world: World
  readonly connection: Connection
  readonly ids: Ids
  readonly store: StoreClient
}
