/** A command of the model test: its parameters, and what the store and the model do with them. */
import fc from 'fast-check'
import type { JobId } from '../../src/job/ids.ts'
import type { StoreUnderTest } from '../../src/stores/conformance/index.ts'
import { compareAll, sync } from './compare.ts'
import type { Model } from './model.ts'

export type Command = fc.AsyncCommand<Model, StoreUnderTest>

/** How often the whole store is compared. Single records are compared after each command. */
const FULL_CHECK_EVERY = 8

interface Definition<Params> {
  readonly name: string
  readonly params: fc.Arbitrary<Params>
  /** Whether the command applies. If not, it is skipped. */
  readonly when?: (model: Model, params: Params) => boolean
  /** Calls the store, compares its answer and changes the model. Returns the jobs whose records to compare. */
  readonly run: (model: Model, under: StoreUnderTest, params: Params) => Promise<Iterable<JobId>>
}

export function command<Params>({ name, params, when, run }: Definition<Params>): fc.Arbitrary<Command> {
  // Cloned, because fast-check makes some objects without a prototype, and a store that writes JSON returns them with one.
  return params
    .map((drawn) => structuredClone(drawn))
    .map((chosen) => ({
      check: (model) => when?.(model, chosen) ?? true,
      run: async (model, under) => {
        const touched = await run(model, under, chosen)
        await sync(model, under, touched)
        model.commandsRun++
        if (model.commandsRun % FULL_CHECK_EVERY === 0) await compareAll(model, under)
      },
      toString: () => `${name}(${fc.stringify(chosen)})`,
    }))
}

/** A random choice that stays valid while the list changes, because any number is a valid index. */
export function pick<Item>(items: readonly Item[], choice: number): Item | undefined {
  return items[choice % Math.max(1, items.length)]
}

/** Gives some commands more weight than others. */
export function often<Item>(times: number, item: Item): Item[] {
  return Array.from({ length: times }, () => item)
}

export const choice: fc.Arbitrary<number> = fc.nat({ max: 1_000 })

export const MINUTE_MS = 60_000
export const HALF_MS = 30_000

/**
 * Time moves by whole minutes, and every duration is a number of minutes and a half. So no decision falls on its edge,
 * where the contract leaves < or ≤ open and a store with its own clock would be slightly off.
 */
export const lastsMs: fc.Arbitrary<number> = fc
  .nat({ max: 4 })
  .map((minutes) => minutes * MINUTE_MS + HALF_MS)

/** `lostRequest`: the call never arrives. `lostReply`: the call arrives, but its answer does not. */
export const fault: fc.Arbitrary<'none' | 'lostRequest' | 'lostReply'> = fc.oneof(
  { weight: 6, arbitrary: fc.constant('none' as const) },
  { weight: 1, arbitrary: fc.constantFrom('lostRequest' as const, 'lostReply' as const) },
)
