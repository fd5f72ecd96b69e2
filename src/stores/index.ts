/**
 * `holdfast/store`: the contract, and helpers to implement it. `holdfast/store/conformance` tests an implementation.
 */
export { HoldfastError, type ErrorCode } from '../errors.ts'
export { crashOutcome, crashRecord, mayHaveRun, type Crashed, type CrashOutcome } from '../job/crash.ts'
export type { AttemptError, FailureKind } from '../job/failure.ts'
export type { FlushId, JobId, Token, WorkerId } from '../job/ids.ts'
export { rankOf } from '../job/rank.ts'
export type { RetryOptions } from '../job/retry.ts'
export type {
  AttemptOutcome,
  AttemptRecord,
  CancelledJob,
  ClaimedJob,
  CompletedJob,
  DeadJob,
  Due,
  Envelope,
  Expiry,
  JobLogLine,
  JobRecord,
  LogLevel,
  NewJob,
  Progress,
  RecordedError,
  RunningJob,
  WaitingJob,
} from '../job/record.ts'
export { comesBack, type Settlement } from '../job/settlement.ts'
export {
  isFinal,
  isLegalMove,
  isWaiting,
  JOB_STATES,
  LEGAL_MOVES,
  type FinalState,
  type JobState,
  type StoredState,
  type WaitingState,
} from '../job/states.ts'
export type { UniqueClaim } from '../job/unique.ts'
export { systemRandom, type Random } from '../std/random.ts'
export { countOutcomes, totalsOf } from './changes.ts'
export { checkCursor } from './cursor.ts'
export { groupOf, mergeGroups } from './dead-groups.ts'
export { matches } from './job-filter.ts'
export { refuseTransaction } from './no-transactions.ts'
export { checkSettles, unknownSettlement } from './settles.ts'
export {
  checkChange,
  checkCount,
  checkDuration,
  checkFlush,
  checkJobs,
  checkNote,
  checkSchedule,
  checkText,
} from './write-check.ts'
export {
  FLUSH_MEMORY_MS,
  LATEST_ARRIVAL_MS,
  LONGEST_START_MS,
  MAX_ATTEMPT_RECORDS,
  MAX_BATCH,
  MAX_LOG_LINES,
  MAX_SCAN,
  SLOW_WORKER,
  START_WITHIN_MS,
  type Admin,
  type CancelNotice,
  type ChangeAnswer,
  type ChangeCounts,
  type ChangeOutcome,
  type ClaimRequest,
  type CommitRequest,
  type CompletedSettlement,
  type CycleAnswer,
  type CycleRequest,
  type DeadGroup,
  type DeadGroupPage,
  type EnqueueAnswer,
  type Flush,
  type HeartbeatAnswer,
  type HeartbeatRequest,
  type JobChange,
  type JobEdit,
  type JobFilter,
  type JobPage,
  type Lease,
  type LeasePosition,
  type ListQuery,
  type Note,
  type Notes,
  type Offer,
  type Page,
  type Pulse,
  type QueueStatus,
  type Report,
  type RescueAnswer,
  type RescuedJob,
  type Retention,
  type ScheduleList,
  type Schedules,
  type ScheduleSpec,
  type SettleAnswer,
  type SettleRequest,
  type Store,
  type StoredSchedule,
  type Transactions,
  type Upkeep,
  type WakeUp,
} from './store.ts'
