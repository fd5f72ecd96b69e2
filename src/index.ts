/** `holdfast`: the public surface, name by name. */
export { holdfast, type Holdfast, type Options } from './holdfast.ts'
export type { RunningWorker } from './hub.ts'
export type {
  BulkOptions,
  BulkProgress,
  DeadLetter,
  DeadLetterChoice,
  DeadLetterFilter,
  DeadLetterGroup,
  DeadLetters,
  HandlerOptions,
  ListOptions,
  ReplayOptions,
} from './client/dead-letters.ts'
export type { DomainEvent, PublishOptions, Subscriber } from './client/event-types.ts'
export type { Published } from './client/fan-out.ts'
export type { PublishedCounts } from './client/publisher.ts'
export type { CancelResult } from './client/cancel.ts'
export type { Handle, JobUpdate, ResultOptions, WatchOptions } from './client/handle.ts'
export type { Schedule, Schedules } from './client/schedules.ts'
export type { Subscription, Subscriptions } from './client/subscriptions.ts'
export type { KeepOptions, QueueConfig } from './core/settings.ts'
export type {
  BatchJobOptions,
  Contract,
  EnqueueOptions,
  EnqueueSyncOptions,
  Item,
  Job,
  Jsonify,
  SqliteTx,
  Tx,
  TxOptions,
} from './client/types.ts'
export {
  Aborted,
  DependencyDown,
  ERROR_HINTS,
  Fatal,
  HoldfastError,
  InvalidInputError,
  PartialEnqueueError,
  PartialPublishError,
  ResourcesExhausted,
  RetryIn,
  whyAborted,
  type AbortWhy,
  type EnqueueFailure,
  type ErrorCode,
  type InputIssue,
} from './errors.ts'
export { chain, type Pass, type Processor } from './flow/chain.ts'
export type { AdaptiveSize, BatchOptions } from './job/batch.ts'
export type { BatchContext, CommitTx, JobInfo, Logger, RunContext, Snooze } from './job/context.ts'
export type { ReceivedEvent } from './job/domain-event.ts'
export type { Instant } from './job/duration.ts'
export type { Events } from './job/events.ts'
export type { FailureKind } from './job/failure.ts'
export type { MiddlewareArgs, Next } from './job/middleware.ts'
export type { NewJobOptions } from './job/new-job.ts'
export type { Aging, Priority } from './job/rank.ts'
export type { Backoff, RetryOptions, RetryPolicy } from './job/retry.ts'
export type { AttemptOutcome, AttemptRecord, JobRecord } from './job/record.ts'
export type { JobState } from './job/states.ts'
export type { Unique } from './job/unique.ts'
export type { CheckFunction, CheckResult } from './manager/check.ts'
export type { CheckOptions, Health, HealthReport, WorkerVerdict } from './manager/health.ts'
export type { HealthOptions } from './manager/options.ts'
export type { WorkerStatus } from './manager/status.ts'
export type { Workers } from './manager/workers.ts'
export type { CatchUp, CronSpec, EverySpec, Overlap, ScheduleSpec } from './scheduler/spec.ts'
export type { DstPolicy, Timing } from './scheduler/timing.ts'
export type { Duration } from './std/duration.ts'
export type { QueueStatus } from './stores/store.ts'
export type { PinoLike } from './telemetry/log.ts'
export type { GetOptions, MessageQueue, SendOptions } from './manual/message-queue.ts'
export type { Message, NackOptions } from './manual/message.ts'
export type { HealthThresholds } from './worker/health-thresholds.ts'
export type { AnyJob } from './core/job-mark.ts'
export type { StopOptions, WorkOptions } from './worker/options.ts'
export type { WorkerHealth } from './worker/worker.ts'
