/** The status of a worker: as users read it, and as the JSON text that processes share through the store. */
export interface WorkerStatus {
  readonly name: string
  /** As in events and logs; a worker that lost its lease continues under another. */
  readonly id: string
  readonly host: string
  readonly pid: number
  readonly state: 'running' | 'stopping'
  readonly queues: readonly string[]
  readonly slots: number
  /** Number of busy slots. */
  readonly busy: number
  /** Number of ready jobs in its queues, whichever worker will run them. */
  readonly queueSize: number
  /** Number of attempts completed or failed since it started. */
  readonly processed: number
  /** Number of those that failed, retried or not. */
  readonly errors: number
  /** Attempts processed per second, over about the last minute. */
  readonly rate: number
  /** Mean run time of its handlers since it started; null before the first has ended. */
  readonly meanMs: number | null
  readonly lastProcessedAt: Date | null
  readonly startedAt: Date
  readonly uptimeMs: number
  /** Resident memory of its process. */
  readonly memoryBytes: number
  /** Maximum delay of a timer in its process during the last round of checks. */
  readonly eventLoopLagMs: number
  /** Result of the last evaluation in its own process. */
  readonly healthy: boolean
  readonly problems: readonly string[]
  /** When its process wrote this; now, for a worker of this process. */
  readonly seenAt: Date
}

/** Without queue sizes, which the reader knows better. */
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

/** Null for a note of another version. */
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

/** By name, then by host and process, so that the order is stable. */
export function inOrder(rows: readonly WorkerStatus[]): WorkerStatus[] {
  return rows.toSorted(
    (a, b) =>
      compare(a.name, b.name) || compare(a.host, b.host) || a.pid - b.pid || +a.startedAt - +b.startedAt,
  )
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
