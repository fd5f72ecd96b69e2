/** What the big store holds, for those who build it and those who ask it. */
export const QUEUES = ['default', 'mail', 'media', 'reports'] as const
/** Of jobs that were cancelled, or claimed a few at a time. */
export const SIDE_QUEUE = 'side'
export const NAMES = ['resize', 'send', 'export', 'sync', 'index'] as const
/** The name of one job in a thousand. */
export const RARE = 'rare'
/** On every tenth job. */
export const TAG = 'vip'

/** Ids of jobs, in the order they were enqueued. */
export interface SampledIds {
  readonly finished: readonly string[]
  readonly waiting: readonly string[]
  readonly dead: readonly string[]
  /** Completed, a few in each claim. */
  readonly small: readonly string[]
  /** Cancelled, or completed with a log. */
  readonly ended: readonly string[]
}
