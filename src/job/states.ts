/**
 * The states of a job and every legal move between them. A move that is not in the table is a bug in a store: the
 * in-memory store asserts each move, and the history checker each recorded move.
 */
export const JOB_STATES = [
  'scheduled',
  'blocked',
  'ready',
  'running',
  'completed',
  'dead',
  'cancelled',
] as const

/**
 * `scheduled`: due later; a retry is scheduled with an attempt behind it. `ready`: due, waits for a worker. `blocked`:
 * ready, but held back by a limit. `running`: leased by a worker. `completed`, `dead` (failed for good, kept for
 * replay), `cancelled`: final.
 */
export type JobState = (typeof JOB_STATES)[number]

/** States that stores write. `blocked` is not among them: a store derives it from a ready job and its limits. */
export type StoredState = Exclude<JobState, 'blocked'>

export const LEGAL_MOVES: Readonly<Record<StoredState, readonly StoredState[]>> = {
  scheduled: ['ready', 'scheduled', 'cancelled'],
  ready: ['running', 'ready', 'scheduled', 'cancelled'],
  running: ['completed', 'dead', 'cancelled', 'scheduled', 'ready'],
  completed: [],
  // Replay is the only way back, and it is always recorded.
  dead: ['ready'],
  cancelled: [],
}

export type WaitingState = 'scheduled' | 'blocked' | 'ready'
export type FinalState = 'completed' | 'dead' | 'cancelled'

export function isWaiting(state: JobState): state is WaitingState {
  return state === 'scheduled' || state === 'blocked' || state === 'ready'
}

export function isFinal(state: JobState): state is FinalState {
  return state === 'completed' || state === 'dead' || state === 'cancelled'
}

export function isLegalMove(from: StoredState, to: StoredState): boolean {
  return LEGAL_MOVES[from].includes(to)
}
