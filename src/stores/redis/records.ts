/** What read.lua answers as the records that people and handles see. */
import type { Token, WorkerId } from '../../job/ids.ts'
import type { JobRecord } from '../../job/record.ts'
import { brokenAnswer, parseAnswer } from '../broken-answer.ts'
import { jobOf, toldOf } from './bodies.ts'

export type ReadRow = readonly [
  id: string,
  record: string,
  past: string,
  end: string,
  /** Ready, scheduled, running or final. */
  state: 'r' | 's' | 'u' | 'f',
  /** Due time of a waiting job, rank of a running one. */
  place: string,
  token: string,
  worker: string,
  claimedAt: string,
  cancelRequested: number | '',
  attempts: string,
]

type End =
  | readonly [
      'c',
      finishedAt: number,
      rank: number,
      ran: number,
      runMs: number,
      dropped: 0 | 1,
      result: string | null,
      worker?: WorkerId,
    ]
  | readonly ['d', finishedAt: number, rank: number, ran: number]
  | readonly ['x', finishedAt: number, rank: number, ran: number, reason: string | null]

/** Placeholder for jobs that completed before the worker was recorded. */
const UNKNOWN_WORKER = '00000000-0000-0000-0000-000000000000' as WorkerId

export function recordOf(row: ReadRow): JobRecord {
  const [id, record, pastText, end, state, place, token, worker, claimedAt, cancelRequested, lines] = row
  if (state === 'f') return finishedOf(row, parseAnswer<End>('redis', end))
  const past = pastText === '' ? null : pastText
  const told = toldOf(record, past, lines)
  if (state === 'u') {
    if (token === '')
      throw brokenAnswer('redis', `job ${id} is neither waiting nor final, and no lease holds it`)
    return {
      ...jobOf({ id, record, past, rank: Number(place), running: 1 }),
      ...told,
      state: 'running',
      token: Number(token) as Token,
      worker: worker as WorkerId,
      claimedAt: Number(claimedAt),
      cancelRequested: cancelRequested === 1,
    }
  }
  return {
    ...jobOf({ id, record, past, rank: null, dueAt: Number(place), running: 0 }),
    ...told,
    state: state === 's' ? 'scheduled' : 'ready',
  }
}

function finishedOf([id, record, pastText, , , , , , , , lines]: ReadRow, end: End): JobRecord {
  const past = pastText === '' ? null : pastText
  const told = toldOf(record, past, lines)
  const [, finishedAt, rank, ran] = end
  const facts = { ...jobOf({ id, record, past, rank, running: ran }), ...told, finishedAt }
  switch (end[0]) {
    case 'c': {
      const [, , , , runMs, dropped, result, worker = UNKNOWN_WORKER] = end
      return { ...facts, state: 'completed', runMs, resultDropped: dropped === 1, result, worker }
    }
    case 'd':
      if (told.error === null) throw brokenAnswer('redis', `job ${id} is dead without an error`)
      return { ...facts, state: 'dead', error: told.error }
    case 'x':
      return { ...facts, state: 'cancelled', reason: end[4] }
  }
}
