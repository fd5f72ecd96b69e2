import { describe, expect, test } from 'vitest'
import { readNames } from '../names.ts'
import { statementsFor } from '../statements.ts'
import { sendThrough } from './handle.ts'
import { onlyJson } from './result.ts'

const answers = [['id', 'inserted']]

describe('the one value of a result', () => {
  test.each<[string, unknown]>([
    ['rows of objects in an object (pg, Knex, Kysely)', { rows: [{ answers }], rowCount: 1 }],
    ['rows of objects (postgres.js, Prisma, TypeORM)', [{ answers }]],
    ['rows of lists', { rows: [[answers]] }],
    ['JSON that nobody has parsed', [{ answers: JSON.stringify(answers) }]],
    ['a column by another name', [{ ANSWERS: answers }]],
  ])('is found in %s', (_shape, result) => {
    expect(onlyJson(result)).toEqual(answers)
  })

  test('may be null', () => {
    expect(onlyJson({ rows: [{ answers: null }] })).toBeNull()
    expect(onlyJson([{ answers: 'null' }])).toBeNull()
  })

  test.each<[unknown]>([[undefined], [null], [[]], [{}], [{ rows: [] }], [[{}]], [1], [{ rows: 'x' }]])(
    'is missed in %j',
    (result) => {
      expect(() => onlyJson(result)).toThrow('the transaction returned no row')
    },
  )
})

describe('the statements of enqueues', () => {
  const { enqueue, enqueueUnique } = statementsFor(readNames({ schema: 'My_Jobs', prefix: 'p_' }))

  test.each([enqueue.text, enqueueUnique.text])(
    'have no question mark, and each value is a text: %s',
    (text) => {
      expect(text).not.toContain('?')
      const used = [...text.matchAll(/\$(\d+)(::text::)?/g)]
      expect(used.map(([, number]) => Number(number))).toEqual(used.map((_, index) => index + 1))
      expect(used.filter(([, , cast]) => cast === undefined)).toEqual([])
    },
  )

  test('get question marks for Knex, whatever the order of the values', async () => {
    const sent: unknown[] = []
    const trx = Object.assign(() => undefined, {
      isTransaction: true,
      transaction: () => undefined,
      raw: (...args: unknown[]) => Promise.resolve(sent.push(args)),
    })
    await sendThrough(trx)('select $2::text, $1::text, $2::text', ['a?', null])
    expect(sent).toEqual([['select ?::text, ?::text, ?::text', [null, 'a?', null]]])
  })
})
