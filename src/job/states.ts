/**
 * The states of a job and every legal move between them. A move that is not in the table is a bug in a store: the
 * in-memory store asserts it at each move, the history checker at each recorded one.
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
 * `scheduled`: due later; a retry is scheduled with an attempt behind it. `blocked`: waits for a limit. `ready`: admitted
 * and due. `running`: leased by a worker. `completed`, `dead` (failed for good, kept for replay), `cancelled`: final.
 */
export type JobState = (typeof JOB_STATES)[number]

export const LEGAL_MOVES: Readonly<Record<JobState, readonly JobState[]>> = {
  scheduled: ['ready', 'blocked', 'scheduled', 'cancelled'],
  blocked: ['ready', 'blocked', 'scheduled', 'cancelled'],
  ready: ['running', 'ready', 'scheduled', 'cancelled'],
  running: ['completed', 'dead', 'cancelled', 'scheduled', 'ready', 'blocked'],
  completed: [],
  // Replay is the only way back, and it is always on record.
  dead: ['ready', 'blocked'],
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

export function isLegalMove(from: JobState, to: JobState): boolean {
  return LEGAL_MOVES[from].includes(to)
}
