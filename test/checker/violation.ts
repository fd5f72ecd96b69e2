/** The rules by name and in words, and what is told of one that was broken. */
import type { HistoryEvent } from './history.ts'

/** In words, as people read them; `history` is not a promise of Holdfast but of whoever recorded the events. */
export const RULES = {
  history: 'the history itself is well formed',
  S1: 'every acked enqueue ends in a final state or is still live',
  S2: 'nothing appears that nobody enqueued',
  S3: "no two live leases on one job by the store's clock",
  S4: 'a commit only with the current token',
  S5: 'token and attempt only grow, except that an attempt is handed back',
  S6: 'final is final unless an explicit retry is on record',
  S7: 'a unique key has at most one live holder',
  S8: 'one job for each tick of a schedule, in order',
  S11: 'only legal transitions',
  S12: 'payload read = payload written',
  S14: 'what is enqueued again is the same job',
  S15: 'counters = recount',
  S16: 'after an acked pause or cancel, no later claim',
  S17: 'a claimable job is not overtaken for longer than the bound',
  S18: 'a job that a lost worker had started counts as a suspect',
  L1: 'an orphan is recovered within lease + sweep + ε',
  L2: 'a worker asks for jobs again soon after the store is back',
  L3: 'no job starves while live workers read its queue',
  L4: 'a drain leaves no lease and ends in its grace',
} as const

export type RuleName = keyof typeof RULES

export interface Violation {
  readonly rule: RuleName
  /** Null where a queue or a node is concerned. */
  readonly job: string | null
  readonly text: string
  /** The event at which it showed: no shorter history shows it. */
  readonly seq: number
  /** What shows it; where the history is an array, all that concerns the job. */
  readonly events: readonly HistoryEvent[]
}
