/**
 * What clients were told of a job and what they have asked for since: enough to judge a history without moves, and to hold
 * the store's answers against its moves in one with them.
 */
import type { Book, Job } from './book.ts'
import type { AnswerEvent, Call, InvokeEvent, Reply, SettlementType } from './history.ts'

type CycleCall = Extract<Call, { kind: 'cycle' }>
type CycleReply = Extract<Reply, { kind: 'cycle' }>

interface LeasedJob {
  readonly token: number
  readonly job: Job | undefined
}

export class Clients {
  /** Tokens that a heartbeat declared undelivered. */
  readonly undelivered = new Set<number>()
  readonly #book: Book

  constructor(book: Book) {
    this.#book = book
  }

  /** Only where there are no moves, which say better what has ended. */
  asked({ call }: InvokeEvent): void {
    if (call.kind === 'cycle') {
      for (const settle of call.settles) {
        const job = this.#book.jobs.get(settle.job)
        if (job === undefined) continue
        if (settle.token >= job.seenToken) job.mayHaveEnded = true
        if (isFinalSettlement(settle.to)) job.mayBeFinal = true
      }
    } else if (call.kind === 'heartbeat') {
      for (const token of call.undelivered) this.undelivered.add(token)
    } else if (call.kind === 'cancel') {
      const job = this.#book.jobs.get(call.job)
      if (job !== undefined) job.mayBeFinal = true
    }
  }

  told(event: AnswerEvent, invoked: InvokeEvent, leased: readonly LeasedJob[], moves: boolean): void {
    const { call } = invoked
    const { reply } = event
    switch (reply.kind) {
      case 'enqueue':
        for (const { id, outcome } of reply.jobs) {
          const job = this.#book.jobs.get(id)
          if (job !== undefined && outcome === 'inserted') job.acked = true
        }
        return
      case 'cycle':
        if (call.kind === 'cycle') this.#settled(event, call, reply, moves)
        return noteLeased(event, leased, invoked.seq)
      case 'rescue':
        for (const { id, to } of reply.jobs)
          this.#rescued(id, to === 'dead' || to === 'cancelled', event.seq, invoked.seq)
        return
      case 'cancel':
        if (
          call.kind === 'cancel' &&
          (reply.outcome === 'cancelled' || reply.outcome === 'requested' || reply.outcome === 'heard')
        ) {
          const job = this.#book.jobs.get(call.job)
          // A replay that came in between has taken the request back.
          if (job !== undefined && job.replayedSeq < invoked.seq) job.cancelledSeq = event.seq
        }
        return
      default:
    }
  }

  #settled(event: AnswerEvent, call: CycleCall, reply: CycleReply, moves: boolean): void {
    for (let index = 0; index < call.settles.length; index++) {
      const settle = call.settles[index]
      if (settle === undefined || reply.settled[index] !== 'written') continue
      const job = this.#book.jobs.get(settle.job)
      const finished = job === undefined ? this.#book.finished.get(settle.job) : undefined
      if (finished !== undefined) finished.writtenToken = settle.token
      if (job === undefined) continue
      job.writtenToken = settle.token
      if (!isFinalSettlement(settle.to)) continue
      job.finalSeq = event.seq
      job.finalBy = settle.to
      // Nobody tells of moves: the answer is all that we will ever know of its end.
      if (!moves && settle.to !== 'dead') this.#finish(job, settle.to, settle.token, event)
    }
  }

  #finish(job: Job, by: SettlementType, token: number, { seq, t }: AnswerEvent): void {
    this.#book.jobs.delete(job.id)
    this.#book.finished.set(job.id, {
      state: by === 'completed' ? 'completed' : 'cancelled',
      seq,
      t,
      // An earlier try of the settle whose answer was lost may have been the one that came through.
      earliestSeq: job.seenSeq,
      settledToken: token,
      writtenToken: token,
      lostTokens: null,
      timedKey: typeof job.spec?.unique?.hold === 'number',
    })
  }

  #rescued(id: string, forGood: boolean, seq: number, invokedSeq: number): void {
    const job = this.#book.jobs.get(id)
    if (job === undefined) return
    job.mayHaveEnded = true
    job.rescuedSeq = seq
    if (forGood) job.mayBeFinal = true
    // One that was claimed while the rescue was under way may be the next lease already.
    if (job.seenSeq < invokedSeq) noteLost(job, job.seenToken, seq)
  }
}

function noteLeased(event: AnswerEvent, leased: readonly LeasedJob[], invokedSeq: number): void {
  for (const { token, job } of leased) {
    // An answer that comes late tells of a lease that is older than the one we know.
    if (job === undefined || token <= job.seenToken) continue
    noteLost(job, token - 1, event.seq)
    job.seenToken = token
    job.seenSeq = event.seq
    job.seenAt = event.t
    // Whatever was final before has been replayed since.
    job.finalSeq = 0
    job.finalBy = null
    // The rescue's answer may have overtaken the claim's.
    job.mayHaveEnded = job.rescuedSeq > invokedSeq
  }
}

function isFinalSettlement(type: SettlementType): boolean {
  return type === 'completed' || type === 'dead' || type === 'cancelled'
}

function noteLost(job: Job, token: number, seq: number): void {
  if (token <= job.lostToken) return
  job.lostToken = token
  job.lostSeq = seq
}
