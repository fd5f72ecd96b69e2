/** The common shape of all maintenance: work to do now, and when to do it again. */
export interface Duty {
  readonly name: string
  /** Does a bounded amount of work; resolves to the delay before the next. */
  run(): Promise<{ readonly againInMs: number }>
}

/** A full batch means that there is more: continue at once, but let other work run in between. */
export const BATCH = 1_000
export const AT_ONCE_MS = 0
