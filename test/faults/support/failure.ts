/** Explains why a history was rejected: the first violations in words, and all events in a file. */
import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Verdict } from '../../checker/check.ts'
import { explain } from '../../checker/explain.ts'
import type { HistoryEvent } from '../../checker/history.ts'

export function failure({ violationCount, violations }: Verdict, events: readonly HistoryEvent[]): Error {
  const path = join(tmpdir(), `holdfast-history-${process.pid}-${Date.now()}.jsonl`)
  writeFileSync(path, events.map((event) => `${JSON.stringify(event)}\n`).join(''))
  const told = violations.slice(0, 3).map(explain)
  return new Error([`${violationCount} violations; the history is in ${path}.`, ...told].join('\n'))
}
