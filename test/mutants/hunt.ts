/** Runs the tests that must notice a mutant, on a store that has it, and tells which did. */
import { storeConformance, type StoreUnderTest } from '../../src/stores/conformance/index.ts'
import { runModelTest } from '../model/run.ts'
import { MODEL, plant, type EditText, type TextMutant } from './mutant.ts'

/** A kind of store, opened with its texts edited. */
export interface MutantSite {
  /** A fresh store, empty and opened; its clock stands still for the model test. */
  open(edit: EditText, frozen: boolean): Promise<StoreUnderTest>
  /** Tests of this kind of store beside the conformance suite, by title. */
  tests(edit: EditText): Readonly<Record<string, () => Promise<void>>>
  /** Of the conformance suite: title → why this store cannot pass it. */
  readonly skip: Readonly<Record<string, string>>
}

export interface Hunted {
  readonly title: string
  readonly ms: number
  /** What the test said; null where it did not notice. */
  readonly caught: string | null
}

/** How long one test may take to notice a mutant. */
export const BUDGET_MS = 20_000
const MODEL_RUNS = { numRuns: 10, seed: 7, shrink: false }

/** All tests by title, each on a store of its own. */
export function testsOn(site: MutantSite, edit: EditText): ReadonlyMap<string, () => Promise<void>> {
  const tests = new Map<string, () => Promise<void>>(Object.entries(site.tests(edit)))
  tests.set(MODEL, () => runModelTest(() => site.open(edit, true), MODEL_RUNS))
  storeConformance({
    open: () => site.open(edit, false),
    skip: site.skip,
    runner: {
      describe: (_, body) => body(),
      test: (title, body) => void tests.set(title, body),
      skip: () => undefined,
    },
  })
  return tests
}

/** `titles`: which tests to run. */
export async function hunt(
  mutant: TextMutant,
  site: MutantSite,
  titles: readonly string[] = mutant.caughtBy,
): Promise<Hunted[]> {
  const { edit, isPlanted } = plant(mutant)
  const tests = testsOn(site, edit)
  const hunted: Hunted[] = []
  for (const title of titles) {
    const begun = performance.now()
    const work = tests.get(title)?.()
    if (work === undefined) throw new Error(`mutant "${mutant.name}": there is no test "${title}"`)
    const caught = await work.then(() => null, explain)
    hunted.push({ title, ms: performance.now() - begun, caught })
  }
  if (!isPlanted()) throw new Error(`mutant "${mutant.name}": ${mutant.file} was never read`)
  return hunted
}

function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  // A mutant that does not fit its file is no test that failed.
  if (error.message.startsWith('mutant "')) throw error
  const cause = error.cause instanceof Error ? error.cause.message : error.message
  return cause.split('\n')[0] ?? ''
}
