/** The status of a worker: as users read it, and as text that the processes of a fleet leave each other in the store. */
export interface WorkerStatus {
  readonly name: string
  /** As in events and logs; a worker that lost its lease goes on under another. */
  readonly id: string
  readonly host: string
  readonly pid: number
  readonly state: 'running' | 'stopping'
  readonly queues: readonly string[]
  readonly slots: number
  /** How many of its slots have a job. */
  readonly busy: number
  /** Jobs that are ready to run in its queues, whichever worker will take them. */
  readonly queueSize: number
  /** Attempts that were completed or failed, since it started. */
  readonly processed: number
  /** Those of them that failed, whether or not they were tried again. */
  readonly errors: number
  /** How many it processed a second, over the last minute or so. */
  readonly rate: number
  /** How long its handlers ran on average, since it started; null before the first has ended. */
  readonly meanMs: number | null
  readonly lastProcessedAt: Date | null
  readonly startedAt: Date
  readonly uptimeMs: number
  /** The resident memory of its process. */
  readonly memoryBytes: number
  /** The worst of the last round of checks, of its process: how much later than due a timer came. */
  readonly eventLoopLagMs: number
  /** As its own process judged it last. */
  readonly healthy: boolean
  readonly problems: readonly string[]
  /** When its process said all this; of a worker of this process, now. */
  readonly seenAt: Date
}

/** Without the sizes of queues, which whoever reads it knows better. */
export type NotedStatus = Omit<WorkerStatus, 'queueSize'>

const VERSION = 1

export function writeNote(status: NotedStatus): string {
  return JSON.stringify({ v: VERSION, ...status })
}

type Written = Omit<NotedStatus, 'startedAt' | 'lastProcessedAt' | 'seenAt'> & {
  readonly v: number
  readonly startedAt: string
  readonly lastProcessedAt: string | null
  readonly seenAt: string
}

/** Null for what another version wrote. */
export function readNote(text: string): NotedStatus | null {
  const { v, startedAt, lastProcessedAt, seenAt, ...rest } = JSON.parse(text) as Written
  if (v !== VERSION) return null
  return {
    ...rest,
    startedAt: new Date(startedAt),
    lastProcessedAt: lastProcessedAt === null ? null : new Date(lastProcessedAt),
    seenAt: new Date(seenAt),
  }
}

/** By name, then by place: the order does not change from one look to the next. */
export function inOrder(rows: readonly WorkerStatus[]): WorkerStatus[] {
  return rows.toSorted(
    (a, b) =>
      compare(a.name, b.name) || compare(a.host, b.host) || a.pid - b.pid || +a.startedAt - +b.startedAt,
  )
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
