/** If somebody adds a kind of settlement, the compiler, the SQL and the Lua name every place that has to know it. */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { Harness, RELEASE } from '../src/stores/conformance/support.ts'
import { pgExecutor } from '../src/stores/postgres/pg/pg-executor.ts'
import { freshDatabase, postgresVersions, sharedPostgres } from './support/servers/database.ts'
import { openRedisStore, redisMissing, sharedRedis } from './support/servers/redis.ts'
import { openSqlStore } from './support/sql-stores.ts'
import { root } from './support/tree.ts'

/** Where a kind of settlement matters. Of the stores each file; of the rest, which turns settlements into events, the folder. */
const PLACES = [
  'src/core',
  'src/job/settlement.ts',
  'src/stores/conformance/support.ts',
  'src/stores/memory/state.ts',
  'src/stores/postgres/settles.ts',
  'src/stores/redis/settles.ts',
  'src/stores/settle-check.ts',
  'src/stores/sqlite/engine/settle.ts',
  'src/testing',
  'src/worker',
]

function placeOf(file: string): string {
  return /^src\/(job|stores)\//.test(file) ? file : file.split('/').slice(0, 2).join('/')
}

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
    return [...new Set(files.map(placeOf))]
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

test('the compiler names every place', { timeout: 120_000 }, () => {
  expect(placesNamed().toSorted()).toEqual(PLACES)
})

/** Takes a kind out of the last of the places that know it, as if it had been forgotten there. */
function forgetting(file: string, place: string, without: string) {
  return (name: string, text: string): string => {
    if (name !== file) return text
    expect(text.split(place)).toHaveLength(2)
    return text.replace(place, without)
  }
}

describe.each(postgresVersions())('the SQL on PostgreSQL %s', (version) => {
  test('refuses a settlement that leads to no state', async () => {
    const database = await freshDatabase(sharedPostgres(version))
    const place = "fresh.kind in ('retry', 'snooze', 'release') as comes_back"
    const edit = forgetting('settle_each.sql', place, place.replace(", 'release'", ''))
    const under = await openSqlStore({ executor: pgExecutor({ connectionString: database.url }), edit })
    const harness = new Harness(under)
    await expect(harness.settle(await harness.running(), RELEASE)).rejects.toThrow('leads to no state')
    await under.close()
    await database.drop()
  })
})

describe.skipIf(redisMissing() !== '')('the Lua', () => {
  test('refuses a settlement that leads to no state', async () => {
    const edit = forgetting('settle', "  elseif kind == 'l' then release(id, queue, rank)\n", '')
    const under = await openRedisStore({ url: sharedRedis(), edit })
    const harness = new Harness(under)
    await expect(harness.settle(await harness.running(), RELEASE)).rejects.toThrow('no kind l')
    await under.close()
  })
})
