import type { Reporter, TestModule, TestRunEndReason, SerializedError, Vitest } from 'vitest/node'

/**
 * Prints `N passed, N failed` (and `, N skipped` if any) alone on the very last line of a run, for whoever
 * reads a log from its end. A file that does not load and an error outside of any test count as failed:
 * neither leaves a failed test behind, and "0 failed" would be a lie.
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
    // At exit, since the other reporters and the close of the pool may still print after this hook.
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
