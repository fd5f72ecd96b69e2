/**
 * Exactly-once effects: what a handler writes and the completion of its job in one transaction. The lease is looked at
 * and locked last, right before the commit: that is the fence for all that was written, and nobody else has to wait for
 * the transaction meanwhile.
 */
import { HoldfastError } from '../../../errors.ts'
import type { CommitRequest, CompletedSettlement, SettleRequest } from '../../store.ts'
import type { Executor, Transaction } from '../executor.ts'
import { packSettles, readSettled, type Held } from '../settles.ts'
import type { Statements } from '../statements.ts'

export async function commit(
  executor: Executor,
  statements: Statements,
  request: CommitRequest,
  write: (tx: unknown) => Promise<CompletedSettlement>,
): Promise<void> {
  await executor.transaction(async (tx) => {
    const settlement = await write(tx.handle)
    await settleIn(tx, statements, request, settlement)
  })
}

async function settleIn(
  tx: Transaction,
  statements: Statements,
  { worker, token, position, forget, runMs }: CommitRequest,
  settlement: CompletedSettlement,
): Promise<void> {
  const settle: SettleRequest = { token, position, settlement, runMs: runMs(), forget }
  const values = [worker, ...packSettles([settle])]
  const [row] = await tx.query<{ settled: Held | null }>(statements.settle, values)
  const [answer] = readSettled([settle], row?.settled ?? [], new Set())
  if (answer === 'written') return
  throw new HoldfastError(
    'HF_LEASE_LOST',
    'The lease of this job is gone, so nothing of what its handler wrote was committed.',
  )
}
