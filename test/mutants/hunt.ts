/** Runs the tests that must notice a mutant on a store that has it, and reports which did. */
import { storeConformance, type StoreUnderTest } from '../../src/stores/conformance/index.ts'
import { runModelTest } from '../model/run.ts'
import { MODEL, plant, type EditText, type TextMutant } from './mutant.ts'

/** A kind of store, opened with its texts edited. */
export interface MutantSite {
  /** A fresh store, empty and opened. For the model test its clock is frozen. */
  open(edit: EditText, frozen: boolean): Promise<StoreUnderTest>
  /** Makes the server parse every text. Fails if it refuses one. */
  load(edit: EditText): Promise<void>
  /** Tests of this kind of store beside the conformance suite, by title. */
  tests(edit: EditText): Readonly<Record<string, () => Promise<void>>>
  /** Of the conformance suite: title → why this store cannot pass it. */
  readonly skip: Readonly<Record<string, string>>
}

export interface Hunted {
  readonly title: string
  readonly ms: number
  /** The error of the test, or null if it did not notice. */
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

/**
 * `titles`: which tests to run. A mutant that the server refuses to load is an error, because every test would fail on it.
 */
export async function hunt(
  mutant: TextMutant,
  site: MutantSite,
  titles: readonly string[] = mutant.caughtBy,
): Promise<Hunted[]> {
  const { edit, isPlanted } = plant(mutant)
  await site.load(edit).catch((error: unknown) => {
    throw new Error(`mutant "${mutant.name}" does not load: ${messageOf(error)}`, { cause: error })
  })
  const tests = testsOn(site, edit)
  const hunted: Hunted[] = []
  for (const title of titles) {
    const begun = performance.now()
    const work = tests.get(title)?.()
    if (work === undefined) throw new Error(`mutant "${mutant.name}": there is no test "${title}"`)
    const caught = await work.then(
      () => null,
      (error: unknown) => explain(mutant, error),
    )
    hunted.push({ title, ms: performance.now() - begun, caught })
  }
  if (!isPlanted()) throw new Error(`mutant "${mutant.name}": ${mutant.file} was never read`)
  return hunted
}

function explain(mutant: TextMutant, error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  // A mutant that does not fit its file is an error, not a failed test.
  if (error.message.startsWith('mutant "')) throw error
  const broken = causesOf(error).find(isBrokenText)
  if (broken !== undefined)
    throw new Error(`mutant "${mutant.name}" does not run: ${messageOf(broken)}`, { cause: error })
  return messageOf(error.cause instanceof Error ? error.cause : error)
}

function causesOf(error: unknown): unknown[] {
  return error instanceof Error ? [error, ...causesOf(error.cause)] : [error]
}

/** Names that do not exist are noticed only when the text runs: SQLSTATE class 42, and globals in Lua. */
function isBrokenText(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { code } = error as { readonly code?: unknown }
  return (
    (typeof code === 'string' && /^42...$/.test(code)) || /nonexistent global variable/.test(error.message)
  )
}

function messageOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split('\n')[0] ?? ''
}
