/**
 * Minutes under a transaction that stays open elsewhere in the database, so that nothing that is deleted can be cleaned
 * up; then what comes after it. Beside it a clean run of the same length: history grows in both.
 */
import { withClient } from '../../../test/support/servers/client.ts'
import type { Figures } from '../../contest/figures.ts'
import type { Work } from '../../contest/protocol.ts'
import type { PressureFigure } from '../figures.ts'
import { Load, saturating, type Span, type Steady } from './load.ts'
import { holdOldTransaction } from './old-transaction.ts'
import type { PostgresScenario, PostgresStage } from './scenario.ts'

/** The rate after the transaction is the best of such parts. */
const RECOVERY_PARTS = 6
const TABLES = 6
/** The load lasts minutes: fewer samples will do. */
const SAMPLE_EVERY = 64

export const PRESSURE: readonly PostgresScenario[] = [
  pressure('pressureSteady', 'pressure-steady', { perSecond: 800, concurrency: 32 }),
  pressure('pressureSaturated', 'pressure-saturated', saturating(64, SAMPLE_EVERY)),
]

interface Course {
  readonly during: Span
  readonly afterPerSecond: number
  /** Dead rows of all tables. */
  readonly deadDuring: number
  readonly deadAfter: number
}

function pressure(
  figure: 'pressureSteady' | 'pressureSaturated',
  name: string,
  load: Work | Steady,
): PostgresScenario {
  return {
    name,
    group: 'pressure',
    peers: false,
    maxRounds: 1,
    onRequest: true,
    async run(stage) {
      const clean = await stage.elsewhere((there) => course(there, load, false))
      const old = await stage.elsewhere((there) => course(there, load, true))
      return { ...figuresOf(`${figure}Clean`, clean), ...figuresOf(`${figure}Old`, old) }
    },
  }
}

async function course(stage: PostgresStage, load: Work | Steady, underOld: boolean): Promise<Course> {
  const { pressureSeconds, recoverySeconds } = stage.sizes
  const running = await Load.start(stage, load)
  const first = async (): Promise<readonly [Span, number]> => {
    const during = await running.span(pressureSeconds)
    return [during, await dead(stage, underOld ? 'at the end of the old transaction' : 'clean')]
  }
  const [during, deadDuring] = underOld
    ? await withClient(stage.url, async (client) => {
        await holdOldTransaction(client)
        return first()
      })
    : await first()
  const rates = await running.rates(recoverySeconds, RECOVERY_PARTS)
  const deadAfter = await dead(stage, underOld ? `${recoverySeconds} s after it` : 'clean, at the end')
  await running.stop()
  // How soon a rate is back is about its best; a clean run has no best moment to look for.
  const afterPerSecond = underOld
    ? Math.max(...rates)
    : rates.reduce((sum, rate) => sum + rate, 0) / rates.length
  return { during, afterPerSecond, deadDuring, deadAfter }
}

async function dead(stage: PostgresStage, when: string): Promise<number> {
  const tables = await stage.server.deadTuples(stage.url)
  const worst = tables.slice(0, TABLES).map(({ table, dead: rows }) => `${table} ${rows}`)
  stage.note(`dead tuples, ${when}: ${worst.length === 0 ? 'none' : worst.join(', ')}`)
  return tables.reduce((sum, { dead: rows }) => sum + rows, 0)
}

function figuresOf<Name extends string>(name: Name, found: Course): Figures<PressureFigure<Name>> {
  return {
    [`${name}Rate`]: found.during.perSecond,
    [`${name}P50`]: found.during.p50Ms,
    [`${name}P99`]: found.during.p99Ms,
    [`${name}After`]: found.afterPerSecond,
    [`${name}Dead`]: found.deadDuring,
    [`${name}DeadAfter`]: found.deadAfter,
  } as Figures<PressureFigure<Name>>
}
