/** Enqueue: all jobs of a flush or none, once per flush id. */
import type { NewJob } from '../../../job/record.ts'
import { checkFlush } from '../../write-check.ts'
import type { EnqueueAnswer, Flush } from '../../store.ts'
import { parseStored } from './damage.ts'
import type { Engine } from './engine.ts'
import { jobColumns, type JobRow } from './rows.ts'

export function enqueue(engine: Engine, flush: Flush): readonly EnqueueAnswer[] {
  const { id, jobs } = flush
  const known = engine.db.get<{ answers: string | null }>('flush', id)
  if (known !== undefined)
    return known.answers === null ? jobs.map(insertedAnswer) : parseStored<EnqueueAnswer[]>(known.answers)
  checkFlush('sqlite', flush)
  const answers = jobs.map((job) => add(engine, job))
  const isPlain = answers.every(({ outcome }) => outcome === 'inserted')
  engine.db.run('rememberFlush', id, engine.now(), isPlain ? null : JSON.stringify(answers))
  return answers
}

export function add(engine: Engine, job: NewJob): EnqueueAnswer {
  const { unique } = job
  const holderId = unique === null ? undefined : engine.keyHolder(unique.key)
  if (holderId !== undefined) return meet(engine, job, engine.job(holderId), holderId)
  if (unique !== null) engine.takeKey(unique, job.id)
  engine.insert(job)
  return insertedAnswer(job)
}

/** The key is held: by a job, or for a time by one that is forgotten. Only a waiting holder is changed. */
function meet(engine: Engine, job: NewJob, holder: JobRow | undefined, id: JobRow['id']): EnqueueAnswer {
  const { unique } = job
  const state = holder === undefined || unique?.onConflict === 'ignore' ? null : engine.waitingState(holder)
  if (holder === undefined || state === null || unique === null) return { id, outcome: 'duplicate' }
  const due = engine.dueAt(job.due)
  const next = due > engine.now() ? 'scheduled' : 'ready'
  engine.takeWaiting(holder, state)
  if (unique.onConflict === 'reschedule') {
    engine.putWaiting(engine.comeBack(holder, { due }), next)
    return { id, outcome: 'rescheduled' }
  }
  // The holder keeps its id and when it was created. Everything else comes from the new job, without attempts.
  engine.takeKey(unique, id)
  const { seq, created } = holder
  const row = { ...jobColumns(job, due), seq, id, created }
  engine.rewrite(row)
  engine.db.run('deletePast', seq)
  engine.putWaiting(row, next)
  return { id, outcome: 'replaced' }
}

function insertedAnswer({ id }: NewJob): EnqueueAnswer {
  return { id, outcome: 'inserted' }
}
