/** Keeps enqueueing at a rate, picking among the recipes by their weights. */
import { Bell } from '../../std/bell.ts'
import type { DemoWorld, Recipe } from './jobs.ts'

const TICK_MS = 50

export class Producer {
  readonly #world: DemoWorld
  readonly #recipes: readonly Recipe[]
  readonly #perMs: number
  readonly #bell: Bell
  #stopped = false
  #running: Promise<void> | undefined

  constructor(world: DemoWorld, recipes: readonly Recipe[], perSecond: number) {
    this.#world = world
    this.#recipes = recipes
    this.#perMs = perSecond / 1_000
    this.#bell = new Bell(world.clock)
  }

  start(): void {
    this.#running ??= this.#run()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#bell.ring()
    await this.#running
  }

  async #run(): Promise<void> {
    const { clock } = this.#world
    let owed = 1
    let lastMs = clock.monotonicMs()
    while (!this.#stopped) {
      const enqueues: Promise<unknown>[] = []
      for (; owed >= 1; owed--) enqueues.push(this.#pick().enqueue())
      await Promise.all(enqueues)
      await this.#bell.wait(TICK_MS)
      const nowMs = clock.monotonicMs()
      owed += this.#perMs * (nowMs - lastMs)
      lastMs = nowMs
    }
  }

  #pick(): Recipe {
    const total = this.#recipes.reduce((sum, recipe) => sum + recipe.weight, 0)
    let left = this.#world.random.float() * total
    const picked = this.#recipes.find((recipe) => (left -= recipe.weight) < 0) ?? this.#recipes[0]
    if (picked === undefined) throw new Error('a producer needs at least one recipe')
    return picked
  }
}
