/** The enqueuer, publisher, schedules and subscriptions of one holdfast(). */
import type { Core } from '../core/core.ts'
import { Enqueuer } from './enqueuer.ts'
import { Publisher } from './publisher.ts'
import { ScheduleBook } from './schedules.ts'
import { SubscriptionBook } from './subscriptions.ts'

export class Client {
  readonly core: Core
  readonly enqueuer: Enqueuer
  readonly publisher: Publisher
  readonly schedules: ScheduleBook
  readonly subscriptions: SubscriptionBook
  /** Names of the domain events defined here. */
  readonly eventNames = new Set<string>()

  constructor(core: Core) {
    this.core = core
    this.enqueuer = new Enqueuer(core)
    this.publisher = new Publisher(core, this.enqueuer)
    this.schedules = new ScheduleBook(core, this.enqueuer)
    this.subscriptions = new SubscriptionBook(core)
  }
}
