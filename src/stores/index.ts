/** `holdfast/store`: the contract, for people who write a store of their own. */
export type { AttemptError, FailureKind } from '../job/failure.ts'
export type { FlushId, JobId, Token, WorkerId } from '../job/ids.ts'
export type {
  CancelledJob,
  ClaimedJob,
  CompletedJob,
  DeadJob,
  Due,
  Envelope,
  JobLogLine,
  JobRecord,
  NewJob,
  Progress,
  RunningJob,
  WaitingJob,
} from '../job/record.ts'
export type { Settlement } from '../job/settlement.ts'
export { crashDelayMs } from '../job/retry.ts'
export { rankOf } from '../job/rank.ts'
export { JOB_STATES, LEGAL_MOVES, type JobState } from '../job/states.ts'
export type { UniqueClaim } from '../job/unique.ts'
export {
  FLUSH_MEMORY_MS,
  MAX_BATCH,
  MAX_LOG_LINES,
  MAX_SCAN,
  type Admin,
  type BulkAction,
  type CancelNotice,
  type ChangeAnswer,
  type ClaimRequest,
  type CycleAnswer,
  type CycleRequest,
  type DeadGroup,
  type DeadGroupPage,
  type EnqueueAnswer,
  type Flush,
  type HeartbeatAnswer,
  type HeartbeatRequest,
  type JobFilter,
  type JobPage,
  type Lease,
  type ListQuery,
  type Page,
  type Pulse,
  type QueueStatus,
  type Report,
  type RescueAnswer,
  type RescuedJob,
  type Retention,
  type Schedules,
  type ScheduleSpec,
  type SettleAnswer,
  type SettleRequest,
  type Store,
  type StoredSchedule,
  type CommitRequest,
  type CompletedSettlement,
  type Transactions,
  type Upkeep,
  type WakeUp,
} from './store.ts'
