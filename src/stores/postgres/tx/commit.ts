/**
 * Exactly-once effects: what a handler writes and the completion of its job in one transaction. The lease is checked
 * and locked last, right before the commit. That fences everything that was written, and no other call has to wait for
 * the transaction until then.
 */
import { HoldfastError } from '../../../errors.ts'
import type { CommitRequest, CompletedSettlement, SettleRequest } from '../../store.ts'
import { NO_CLAIM, readRows } from '../cycle.ts'
import type { Executor } from '../executor.ts'
import type { Transaction } from '../pg/transaction.ts'
import { packSettles, readSettled } from '../settles.ts'
import type { Statements } from '../statements.ts'

export interface CommitParts {
  readonly executor: Executor
  readonly statements: Statements
}

export async function commit(
  parts: CommitParts,
  request: CommitRequest,
  write: (tx: unknown) => Promise<CompletedSettlement>,
): Promise<void> {
  const work = async (tx: Transaction): Promise<void> => {
    const settlement = await write(tx.handle)
    await settleIn(tx, parts, request, settlement)
  }
  await parts.executor.transaction(work, { ofHandler: true })
}

async function settleIn(
  tx: Transaction,
  { statements }: CommitParts,
  { worker, token, position, forget, runMs }: CommitRequest,
  settlement: CompletedSettlement,
): Promise<void> {
  const settle: SettleRequest = { token, position, settlement, runMs: runMs(), forget }
  const values = [worker, ...packSettles([settle]), ...NO_CLAIM]
  const { held } = readRows(await tx.query<{ answer: string }>(statements.cycle, values))
  const [answer] = readSettled([settle], held, new Set())
  if (answer === 'written') return
  throw new HoldfastError(
    'HF_LEASE_LOST',
    'The lease of this job is gone, so nothing of what its handler wrote was committed.',
  )
}
