/** What the scenarios need of a store's server. */
export interface ContestServer {
  readonly version: string
  /** For one run, shared with no other; returns its URL. */
  createPlace(): Promise<string>
  dropPlace(url: string): Promise<void>
  /** Nothing left to be done or written that was not caused by what is measured next. */
  calmDown(url: string): Promise<void>
  /** Used so far. */
  cpuMicros(): number
  /** Written so far to the file that makes changes durable. */
  loggedBytes(): Promise<number>
  dispose(): Promise<void>
}
