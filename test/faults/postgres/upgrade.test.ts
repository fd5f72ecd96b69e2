/**
 * Rehearses the rule for released versions: a fleet of processes goes from today's build to an invented next one and back
 * while it enqueues and works. Nobody notices, whether the programs or the schema are upgraded first.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freshDatabase, sharedPostgres, type Database } from '../../support/servers/database.ts'
import { packBuilds, type Builds } from './support/builds.ts'
import { Rehearsal } from './support/rehearsal.ts'

let builds: Builds
beforeAll(async () => {
  builds = await packBuilds()
}, 60_000)
afterAll(() => builds.remove())

async function rehearse(work: (rehearsal: Rehearsal) => Promise<void>): Promise<void> {
  const database: Database = await freshDatabase(sharedPostgres(18))
  const rehearsal = new Rehearsal(database.url)
  try {
    await rehearsal.prepare()
    await work(rehearsal)
  } finally {
    await rehearsal.close()
    await database.drop()
  }
}

const PATIENT = { timeout: 120_000 }

describe('a fleet under load', () => {
  test('goes on while the first new process upgrades the schema, and after the last old one', PATIENT, () =>
    rehearse(async (rehearsal) => {
      const { today, next } = builds
      const first = await rehearsal.start('first', today, { produce: true })
      const second = await rehearsal.start('second', today, {})
      await rehearsal.progress()

      const third = await rehearsal.start('third', next, { produce: true })
      expect(await rehearsal.version()).toBe(next.version)
      await rehearsal.progress()
      // The new program uses this function only on the new schema.
      expect(await rehearsal.claimedByNext()).toBeGreaterThan(0)

      await rehearsal.stop(first, second)
      await rehearsal.progress()
      await rehearsal.judge(third)
    }),
  )

  test(
    'goes on while new programs come before the schema, and back to the old ones on the new schema',
    PATIENT,
    () =>
      rehearse(async (rehearsal) => {
        const { today, next } = builds
        const first = await rehearsal.start('first', today, { produce: true })
        const second = await rehearsal.start('second', next, { produce: true, migrate: false })
        expect(await rehearsal.version()).toBe(today.version)
        await rehearsal.progress()

        await rehearsal.runSchema(next)
        expect(await rehearsal.version()).toBe(next.version)
        await rehearsal.progress()
        // Repeated, so that a call is likely to be in flight at the worst moment.
        for (let run = 0; run < 5; run++) {
          await rehearsal.forgetHeaders()
          await rehearsal.runSchema(next)
          await rehearsal.progress(20)
        }

        const third = await rehearsal.start('third', next, {})
        await rehearsal.progress()
        expect(await rehearsal.claimedByNext()).toBeGreaterThan(0)

        await rehearsal.stop(second, third)
        const fourth = await rehearsal.start('fourth', today, {})
        expect(await rehearsal.version()).toBe(next.version)
        await rehearsal.progress()
        await rehearsal.judge(first, fourth)
      }),
  )
})

describe('two versions apart', () => {
  test('a program is refused by the schema, newer or older', PATIENT, () =>
    rehearse(async (rehearsal) => {
      const { today, next, later } = builds
      await rehearsal.runSchema(today)
      expect(await rehearsal.refused(later, { migrate: false })).toBe('HF_SCHEMA_MISSING')
      expect(await rehearsal.version()).toBe(today.version)

      await rehearsal.runSchema(later)
      expect(await rehearsal.refused(today, {})).toBe('HF_SCHEMA_TOO_NEW')
      expect(await rehearsal.refused(today, { migrate: false })).toBe('HF_SCHEMA_TOO_NEW')
      expect(await rehearsal.version()).toBe(later.version)
      await rehearsal.stop(await rehearsal.start('before', next, {}))
    }),
  )
})
