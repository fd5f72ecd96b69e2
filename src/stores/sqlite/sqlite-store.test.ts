import { existsSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { storeFrom } from '../from-url.ts'
import { systemClock } from '../../std/clock.ts'
import { systemRandom } from '../../std/random.ts'
import { sqliteStore, type SqliteStoreOptions } from './sqlite-store.ts'

function refusal(code: string, message: string): Error {
  return expect.objectContaining({ code, message: expect.stringContaining(message) as string })
}

describe('sqliteStore() refuses', () => {
  test.each(['', 7, null])('the directory %j', (directory) => {
    expect(() => sqliteStore({ directory } as unknown as SqliteStoreOptions)).toThrow(
      refusal('HF_BAD_OPTION', `\`sqliteStore().directory\` is ${JSON.stringify(directory)}`),
    )
  })

  test.each(['off', 'FULL', 'full; drop table holdfast_job', 2])('the durability %j', (durability) => {
    expect(() => sqliteStore({ durability } as unknown as SqliteStoreOptions)).toThrow(
      refusal('HF_BAD_OPTION', `\`sqliteStore().durability\` is ${JSON.stringify(durability)}`),
    )
  })

  test('a store in memory, by name and by URL', () => {
    const inFiles = refusal('HF_BAD_STORE', 'in files, not in memory')
    expect(() => sqliteStore({ directory: ':memory:' })).toThrow(inFiles)
    expect(() => storeFrom('file::memory:', systemClock, systemRandom)).toThrow(inFiles)
    expect(existsSync(':memory:')).toBe(false)
  })
})
