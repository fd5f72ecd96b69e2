import type { Reporter, TestModule, TestRunEndReason, SerializedError, Vitest } from 'vitest/node'

/**
 * Prints `N passed, N failed` (and `, N skipped` if any) alone on the last line of a run. A file that does not load and an
 * error outside of any test count as failed: they leave no failed test, and "0 failed" would be wrong.
 */
export class SummaryReporter implements Reporter {
  #watching = false

  onInit(vitest: Vitest): void {
    this.#watching = vitest.config.watch
  }

  onTestRunEnd(
    modules: readonly TestModule[],
    unhandled: readonly SerializedError[],
    _reason: TestRunEndReason,
  ): void {
    const line = summarize(modules, unhandled.length)
    if (this.#watching) console.log(line)
    // At exit, because other reporters and the shutdown of the pool may still print after this hook.
    else process.once('exit', () => console.log(line))
  }
}

function summarize(modules: readonly TestModule[], unhandled: number): string {
  const count = { passed: 0, failed: unhandled, skipped: 0, pending: 0 }
  for (const module of modules) {
    for (const test of module.children.allTests()) count[test.result().state]++
    const suiteErrors = [...module.children.allSuites()].reduce(
      (sum, suite) => sum + suite.errors().length,
      0,
    )
    count.failed += module.errors().length + suiteErrors
  }
  const skipped = count.skipped + count.pending
  return `${count.passed} passed, ${count.failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`
}
