import { describe, expect, test } from 'vitest'
import { killSoakOnSqlite } from './support/kill-site.ts'

describe('processes on one store that are killed or frozen under load', () => {
  // Six rounds of `npm run soak:kills -- --store sqlite`.
  test('lose no job, and write nothing stale', { timeout: 180_000 }, async ({ annotate }) => {
    const report = await killSoakOnSqlite({ rounds: 6 })
    await annotate(
      `${report.acked} jobs acked, ${report.staleSettlesRefused} stale settles refused, ${report.repeatedEffects} runs repeated`,
    )
    expect(report).toMatchObject({ kills: 5, freezes: 1, lost: 0, badEffects: 0, violations: [] })
    expect(report.completed).toBeGreaterThan(0)
  })
})
