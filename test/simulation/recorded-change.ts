/** How a history for the checker tells of a change. */
import { totalsOf } from '../../src/stores/changes.ts'
import type { ChangeAnswer, JobChange, JobFilter } from '../../src/stores/store.ts'
import type { Call, Reply } from '../checker/history.ts'

/** A cancel of one job says what became of it. Edits are not judged. */
export function changeCall({ ids }: JobFilter, { type }: JobChange): Call {
  const [only, ...others] = ids ?? []
  if (type === 'edit') return { kind: 'other', what: 'edit' }
  if (type === 'cancel' && only !== undefined && others.length === 0) return { kind: 'cancel', job: only }
  return { kind: 'change', action: type, jobs: ids ?? null }
}

export function changeReply(call: Call, { outcomes }: ChangeAnswer): Reply {
  if (call.kind === 'other') return { kind: 'other' }
  if (call.kind === 'change') return { kind: 'change', changed: totalsOf(outcomes).changed }
  const [outcome = 'missing'] = Object.keys(outcomes) as (keyof ChangeAnswer['outcomes'])[]
  switch (outcome) {
    case 'cancelled':
    case 'requested':
    case 'heard':
    case 'final':
    case 'missing':
      return { kind: 'cancel', outcome }
    default:
      throw new Error(`A cancel was answered with "${outcome}".`)
  }
}
