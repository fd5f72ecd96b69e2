import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freshDatabase, sharedPostgres, type Database } from '../../../test/support/servers/database.ts'
import type { Executor, Statement } from './executor.ts'
import { boolArray, intArray, textArray, uuidArray } from './literals.ts'
import { pgExecutor } from './pg/pg-executor.ts'

const texts: Statement = {
  name: 'texts',
  text: 'select $1::text[] as list, cardinality($1::text[]) as count',
}
const numbers: Statement = { name: 'numbers', text: 'select $1::bigint[] as list' }
const integers: Statement = { name: 'integers', text: 'select $1::integer[] as list' }
const uuids: Statement = { name: 'uuids', text: 'select $1::uuid[] as list' }
const booleans: Statement = { name: 'booleans', text: 'select $1::boolean[] as list' }
const documents: Statement = {
  name: 'documents',
  text: 'select array_agg(document::jsonb order by n) as list from unnest($1::text[]) with ordinality as u (document, n)',
}

/** What PostgreSQL can hold: no NUL, no lone surrogates. */
const anyText = fc
  .oneof(
    fc.string({ unit: 'binary' }),
    fc.string({
      unit: fc.constantFrom('"', '\\', '{', '}', ',', ' ', '\n', '\t', 'N', 'NULL', 'é', '😀', '\uFEFF'),
    }),
  )
  .map((text) => text.replaceAll('\0', '').toWellFormed())
const orNull = <T>(values: fc.Arbitrary<T>): fc.Arbitrary<(T | null)[]> =>
  fc.array(fc.option(values, { freq: 10 }), { maxLength: 20 })

describe('an array literal on PostgreSQL', () => {
  let database: Database
  let executor: Executor

  beforeAll(async () => {
    database = await freshDatabase(sharedPostgres(18))
    executor = pgExecutor({ connectionString: database.url })
    await executor.open()
  })

  afterAll(async () => {
    await executor.close()
    await database.drop()
  })

  const listOf = async (statement: Statement, literal: string): Promise<unknown> => {
    const [row] = await executor.query<{ list: unknown }>(statement, [literal])
    return row?.list
  }

  test('brings any texts back as they were', async () => {
    await fc.assert(
      fc.asyncProperty(orNull(anyText), async (values) => {
        expect(await listOf(texts, textArray(values))).toEqual(values)
      }),
      { numRuns: 300 },
    )
  })

  test('brings any numbers, booleans and uuids back as they were', async () => {
    await fc.assert(
      fc.asyncProperty(
        orNull(fc.maxSafeInteger()),
        orNull(fc.integer()),
        orNull(fc.boolean()),
        orNull(fc.uuid()),
        async (bigints, ints, bools, ids) => {
          expect(await listOf(numbers, intArray(bigints))).toEqual(bigints)
          expect(await listOf(integers, intArray(ints))).toEqual(ints)
          expect(await listOf(booleans, boolArray(bools))).toEqual(bools)
          expect(await listOf(uuids, uuidArray(ids))).toEqual(ids)
        },
      ),
      { numRuns: 100 },
    )
  })

  test('brings any JSON back as it was', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.jsonValue({ noUnicodeString: false }), { minLength: 1, maxLength: 5 }),
        async (values) => {
          const written = values
            .map((value) => JSON.stringify(value))
            .filter((text) => !text.includes(String.raw`\u0000`))
          fc.pre(written.length > 0)
          const read = await listOf(documents, textArray(written))
          expect(read).toEqual(written.map((text) => JSON.parse(text)))
        },
      ),
      { numRuns: 100 },
    )
  })

  test('cannot make two uuids of one text', async () => {
    const id = '018f0000-0000-7000-8000-000000000000'
    await expect(listOf(uuids, uuidArray([`${id},${id}`]))).rejects.toMatchObject({
      code: 'HF_STORE_REFUSED',
      cause: { code: '22P02' },
    })
    await expect(listOf(uuids, uuidArray([`${id}","${id}`]))).rejects.toMatchObject({
      code: 'HF_STORE_REFUSED',
      cause: { code: '22P02' },
    })
  })
})

describe('an array literal', () => {
  test.each([
    ['no items', textArray([]), '{}'],
    ['an empty text', textArray(['']), '{""}'],
    ['a text that says NULL', textArray(['NULL', null]), '{"NULL",null}'],
    ['quotes and backslashes', textArray(['b"c\\d']), String.raw`{"b\"c\\d"}`],
    ['a line break, which JSON escapes and an array does not', textArray(['a\nb', null]), '{"a\nb",NULL}'],
    ['numbers', intArray([1, null, -9_007_199_254_740_992]), '{1,NULL,-9007199254740992}'],
    ['booleans', boolArray([true, false, null]), '{true,false,NULL}'],
  ])('of %s', (_, literal, expected) => {
    expect(literal).toBe(expected)
  })
})
