/** The one shape of all upkeep: something to do now, and when to do it again. */
export interface Duty {
  readonly name: string
  /** Does a bounded piece of work; resolves to how long to wait before the next. */
  run(): Promise<{ readonly againInMs: number }>
}

/** Work that fills a batch has more behind it: go on at once, but let others have a turn. */
export const BATCH = 1_000
export const AT_ONCE_MS = 0
