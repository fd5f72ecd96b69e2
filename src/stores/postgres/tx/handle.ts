/** A transaction that the caller began with a library of its own, as a way to run one statement in it. */
import { HoldfastError } from '../../../errors.ts'
import { drizzle } from './drizzle.ts'
import { knex } from './knex.ts'
import { kysely } from './kysely.ts'
import { pg } from './pg.ts'
import { postgresJs } from './postgres-js.ts'
import { prisma } from './prisma.ts'
import type { Recognise, Send } from './shape.ts'
import { typeorm } from './typeorm.ts'

/** The most general one last: it accepts everything that has a `query`. */
const LIBRARIES: readonly Recognise[] = [prisma, kysely, drizzle, knex, postgresJs, typeorm, pg]

export function sendThrough(tx: unknown): Send {
  const send = isHandle(tx) ? firstOf(LIBRARIES, tx) : undefined
  if (send !== undefined) return send
  throw new HoldfastError('HF_BAD_OPTION', '{ tx } is not a transaction that Holdfast knows.', {
    hint: 'Pass a client of pg after BEGIN, or the transaction that postgres.js, Kysely, Drizzle, Prisma, Knex or TypeORM gives; or any object with query(text, values) that resolves to { rows }.',
  })
}

function isHandle(tx: unknown): tx is object {
  return (typeof tx === 'object' && tx !== null) || typeof tx === 'function'
}

function firstOf(libraries: readonly Recognise[], tx: object): Send | undefined {
  for (const recognise of libraries) {
    const send = recognise(tx)
    if (send !== undefined) return send
  }
  return undefined
}
