/** If somebody adds a kind of settlement, the compiler, the SQL and the Lua name every place that has to know it. */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { HoldfastError } from '../src/errors.ts'
import { comesBack } from '../src/job/settlement.ts'
import type { StoreUnderTest } from '../src/stores/conformance/index.ts'
import {
  attemptRecord,
  cancelOne,
  COMPLETED,
  EVERY_SETTLEMENT,
  Harness,
  newJobs,
  settleRequest,
} from '../src/stores/conformance/support.ts'
import { pgExecutor } from '../src/stores/postgres/pg/pg-executor.ts'
import { freshDatabase, postgresVersions, sharedPostgres } from './support/servers/database.ts'
import { openRedisStore, redisMissing, sharedRedis } from './support/servers/redis.ts'
import { openSqlStore } from './support/sql-stores.ts'
import { root } from './support/tree.ts'

/** Where a kind of settlement matters. */
const PLACES = [
  'src/core/instrumentation.ts',
  'src/job/settlement.ts',
  'src/stores/conformance/support.ts',
  'src/stores/memory/state.ts',
  'src/stores/postgres/cycle.ts',
  'src/stores/postgres/settles.ts',
  'src/stores/redis/settles.ts',
  'src/stores/settles.ts',
  'src/stores/sqlite/engine/settle.ts',
  'src/testing/test-worker.ts',
  'src/worker/settling.ts',
]

/** Compiles the sources with one more kind of settlement. Returns what doesn't compile. */
function placesNamed(): string[] {
  mkdirSync(`${root}node_modules/.cache`, { recursive: true })
  const folder = mkdtempSync(`${root}node_modules/.cache/kinds-`)
  try {
    cpSync(`${root}src`, `${folder}/src`, { recursive: true })
    cpSync(`${root}tsconfig.json`, `${folder}/tsconfig.base.json`)
    symlinkSync(`${root}node_modules`, `${folder}/node_modules`)
    const tsconfig = { extends: './tsconfig.base.json', include: ['src'], exclude: ['src/**/*.test.ts'] }
    writeFileSync(`${folder}/tsconfig.json`, JSON.stringify(tsconfig))
    const path = `${folder}/src/job/settlement.ts`
    const [before, after, ...more] = readFileSync(path, 'utf8').split('export type Settlement =\n')
    expect(more).toEqual([])
    writeFileSync(
      path,
      `${before}export type Settlement =\n  | { readonly type: 'archived'; readonly shelf: string }\n${after}`,
    )
    const { stdout } = spawnSync(process.execPath, [`${root}node_modules/typescript/bin/tsc`, '-p', folder], {
      cwd: folder,
      encoding: 'utf8',
    })
    const files = [...stdout.matchAll(/^(src\/\S+?)\(\d+,\d+\): error/gm)].map(([, file = '']) => file)
    return [...new Set(files)]
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

test('the compiler names every place', { timeout: 120_000 }, () => {
  expect(placesNamed().toSorted()).toEqual(PLACES)
})

/**
 * Settles in every way there is: each kind in one lease with the others, with a requested cancel if it would come back,
 * forgotten, and with a record of the attempt.
 */
async function settleInEveryWay(under: StoreUnderTest): Promise<void> {
  const harness = new Harness(under)
  const worker = await harness.worker()
  const wished = EVERY_SETTLEMENT.filter(comesBack)
  const settlements = [...EVERY_SETTLEMENT, ...wished, COMPLETED, COMPLETED]
  const jobs = newJobs(settlements.length)
  await harness.enqueue(jobs)
  const held = await harness.claimAll(worker, { limit: settlements.length })
  for (const { job } of held.slice(EVERY_SETTLEMENT.length, -2))
    await cancelOne(under.store, job.id, 'wished')
  const requests = held.map((one, at) => settleRequest(one, settlements[at]!))
  const last = requests.length - 1
  requests[last - 1] = { ...requests[last - 1]!, forget: true }
  requests[last] = { ...requests[last]!, record: attemptRecord(held[last]!) }
  try {
    const { settled } = await harness.cycle(worker, requests, null)
    expect(new Set(settled)).toEqual(new Set(['written']))
  } catch (error) {
    for (const { id } of jobs) await harness.inState(id, 'running')
    throw error
  }
  // Without a kind that is named, all are completed.
  const alone = await harness.running({ queue: 'alone' })
  await harness.cycle(
    alone.worker,
    [{ ...settleRequest(alone, COMPLETED), record: attemptRecord(alone) }],
    null,
  )
}

interface Forgotten {
  readonly what: string
  readonly edit: (name: string, text: string) => string
}

/** Each match in the code of a file, replaced in turn. */
function forgetting(
  file: string,
  path: string,
  comment: string,
  mention: RegExp,
  without: string,
): Forgotten[] {
  const source = readFileSync(`${root}${path}`, 'utf8')
  return [...source.matchAll(mention)].flatMap((match): Forgotten[] => {
    const line = source.slice(source.lastIndexOf('\n', match.index) + 1).split('\n')[0]!
    if (line.trimStart().startsWith(comment)) return []
    const number = source.slice(0, match.index).split('\n').length
    const edit = (name: string, text: string): string => {
      if (name !== file) return text
      expect(text).toBe(source)
      return text.slice(0, match.index) + without + text.slice(match.index + match[0].length)
    }
    return [{ what: `${match[0]} in line ${number}`, edit }]
  })
}

/** What is forgotten and yet not refused. */
async function unnoticed(
  forgotten: readonly Forgotten[],
  open: (edit: Forgotten['edit']) => Promise<StoreUnderTest>,
): Promise<string[]> {
  const all: string[] = []
  for (const { what, edit } of forgotten) {
    const under = await open(edit)
    const refused = await settleInEveryWay(under).then(
      () => 'nothing',
      (error: unknown) => error,
    )
    await under.close()
    const isNamed = refused instanceof HoldfastError && REFUSED.test(refused.message)
    if (!isNamed) all.push(`${what}: ${String(refused)}`)
  }
  return all
}

const REFUSED = /unknown kind|leads to no state|has no due time or no attempt/

describe.each(postgresVersions())('the SQL on PostgreSQL %s', (version) => {
  test('refuses a kind that one of its places forgets', { timeout: 120_000 }, async () => {
    const database = await freshDatabase(sharedPostgres(version))
    const executor = pgExecutor({ connectionString: database.url })
    const path = 'src/stores/postgres/schema/functions/settle_each.sql'
    const kinds = /'(completed|forget|retry|dead|snooze|release|cancelled)'/g
    const mentions = forgetting('settle_each.sql', path, '--', kinds, "'none'")
    expect(mentions.length).toBeGreaterThan(15)
    const open = (edit: Forgotten['edit']): Promise<StoreUnderTest> =>
      openSqlStore({ executor, own: false, edit })
    expect(await unnoticed(mentions, open)).toEqual([])
    const whole = await open((_, text) => text)
    await settleInEveryWay(whole)
    await whole.close()
    await executor.close()
    await database.drop()
  })
})

describe.skipIf(redisMissing() !== '')('the Lua', () => {
  const path = 'src/stores/redis/lua/settle.lua'
  const open = (edit: Forgotten['edit']): Promise<StoreUnderTest> =>
    openRedisStore({ url: sharedRedis(), edit })

  test('refuses a kind that its table forgets', { timeout: 60_000 }, async () => {
    const kinds = forgetting('settle', path, '--', /^ {4}[a-z](?= = \{ value)/gm, 'none')
    expect(kinds).toHaveLength(7)
    expect(await unnoticed(kinds, open)).toEqual([])
    await settleInEveryWay(await open((_, text) => text))
  })

  test('refuses a kind of which its table does not say everything', { timeout: 60_000 }, async () => {
    const types = String.raw`'(nil|string|number)'`
    const field = new RegExp(
      String.raw`\b(value(?= = ${types})|(needs_error|comes_back|counts|settle)(?= = (true|false|function|schedule)))`,
      'g',
    )
    const fields = forgetting('settle', path, '--', field, 'none')
    expect(fields).toHaveLength(5 * 7)
    expect(await unnoticed(fields, open)).toEqual([])
  })
})
