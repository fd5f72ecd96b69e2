import { describe, expect, test } from 'vitest'
import { redisMissing } from '../../support/servers/redis.ts'
import { killSoakOnRedis } from './support/kill-site.ts'

describe.skipIf(redisMissing() !== '')(
  'workers that are killed or frozen under load, and Redis with them',
  () => {
    // Three rounds of `npm run soak:kills -- --store redis`.
    test('lose no job, and write nothing stale', { timeout: 240_000 }, async (context) => {
      const report = await killSoakOnRedis({ rounds: 3 })
      await context.annotate(
        `${report.acked} jobs acked, ${report.staleSettlesRefused} stale settles refused, ${report.repeatedEffects} runs repeated`,
      )
      expect(report).toMatchObject({
        kills: 2,
        freezes: 1,
        serverKills: 1,
        lost: 0,
        badEffects: 0,
        violations: [],
      })
      expect(report.completed).toBeGreaterThan(0)
    })
  },
)
