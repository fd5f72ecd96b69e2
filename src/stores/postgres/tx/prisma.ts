/** Prisma's client inside `prisma.$transaction(async (tx) => …)`. */
import { has, notInTransaction, type Recognise } from './shape.ts'

export const prisma: Recognise = (tx) => {
  if (!has(tx, '$queryRawUnsafe')) return undefined
  // Only the client itself connects; both have $transaction by now.
  if (has(tx, '$connect')) {
    throw notInTransaction(
      'a PrismaClient outside of a transaction',
      'Use prisma.$transaction(async (tx) => …), and pass the tx that it gives.',
    )
  }
  return async (text, values) => tx.$queryRawUnsafe(text, ...values)
}
