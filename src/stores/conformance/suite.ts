/** The shape that every topic of the suite has, and what it asks of a test runner. */
import type { Harness } from './support.ts'

/** The functions of a test runner, so that the suite depends on none. */
export interface Runner {
  describe(name: string, body: () => void): void
  test(name: string, body: () => Promise<void>): void
  skip(name: string): void
}

/** Tests by title; a title is unique in the whole suite, because skips go by it. */
export type Tests = Readonly<Record<string, (harness: Harness) => Promise<void>>>

export interface Topic {
  readonly name: string
  readonly tests: Tests
}

/** One test for each case: `title` makes its name. */
export function each<Case>(
  cases: readonly Case[],
  title: (one: Case) => string,
  body: (harness: Harness, one: Case) => Promise<void>,
): Tests {
  const titles = new Set(cases.map(title))
  // Two cases under one title would silently be one test.
  if (titles.size !== cases.length) throw new Error(`Cases share a title: ${[...titles].join(', ')}`)
  return Object.fromEntries(cases.map((one) => [title(one), (harness: Harness) => body(harness, one)]))
}

/** Skips every test of a topic, for the same reason. */
export function skipAll({ tests }: Topic, reason: string): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.keys(tests).map((title) => [title, reason]))
}
