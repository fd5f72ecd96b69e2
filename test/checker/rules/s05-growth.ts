/**
 * S5: a later lease of a job has a greater token; a claim counts one attempt; nothing else counts one, and one is taken
 * back only if it is handed back: release, snooze, the release of an undelivered lease, rescue; replay and replace take back all.
 */
import type { Job } from '../book.ts'
import type { AnswerEvent, HistoryEvent, InvokeEvent, MoveEvent } from '../history.ts'
import type { Rule } from '../rule.ts'
import type { World } from '../world.ts'

export class Growth implements Rule {
  readonly name = 'S5'
  readonly sees = ['move', 'answer'] as const
  readonly #world: World

  constructor(world: World) {
    this.#world = world
  }

  on(event: HistoryEvent): void {
    if (event.type === 'answer') {
      if (this.#world.invoked !== undefined) this.#answered(event, this.#world.invoked)
    } else if (event.type === 'move') {
      const { job } = this.#world
      if (event.from === null) {
        if (event.attempt !== 0 || event.crashes !== 0)
          this.#wrong(job, event, 'it was born with attempts behind it')
      } else if (job !== undefined && job.state !== null && event.to !== null) {
        this.#moved(event, job)
      }
    }
  }

  #moved(event: MoveEvent, job: Job): void {
    if (event.by === 'claim' && (event.token ?? 0) <= job.token) {
      this.#wrong(job, event, `claimed under token ${event.token} after it had token ${job.token}`)
    }
    const [least, most] = attemptsAfter(event, job.attempt)
    if (event.attempt < least || event.attempt > most) {
      const by = event.settlement === undefined ? event.by : `${event.by} (${event.settlement})`
      this.#wrong(job, event, `${by} took it from attempt ${job.attempt} to ${event.attempt}`)
    }
    if (!crashesAfter(event, job.crashes).includes(event.crashes)) {
      this.#wrong(job, event, `${event.by} took it from ${job.crashes} crashes to ${event.crashes}`)
    }
  }

  #answered(event: AnswerEvent, invoked: InvokeEvent): void {
    for (const { id, token, attempt, job } of this.#world.leased) {
      if (job === undefined) continue
      if (token <= job.seenToken && invoked.seq > job.seenSeq) {
        const text = `claimed under token ${token} after a claim under token ${job.seenToken} had been answered`
        this.#world.report('S5', id, text, [invoked, event])
      }
      if (this.#world.moves && job.state === 'running' && job.token === token && job.attempt !== attempt) {
        const text = `answered as attempt ${attempt}, but it is attempt ${job.attempt}`
        this.#world.report('S5', id, text, [job.lastMove, event])
      }
    }
  }

  #wrong(job: Job | undefined, event: MoveEvent, text: string): void {
    this.#world.report('S5', event.job, text, [job?.lastMove ?? null, event])
  }

  end(): void {}
}

/** How many crashes the job may have after a move: a rescue counts none for a job that was not started. */
function crashesAfter({ by, to }: MoveEvent, crashes: number): readonly number[] {
  if (by === 'replay' || by === 'replace') return [0]
  if (by !== 'rescue' || to === 'ready') return [crashes]
  return to === 'cancelled' ? [crashes, crashes + 1] : [crashes + 1]
}

/** The least and the most that the attempt may be after a move. */
function attemptsAfter({ by, settlement, to }: MoveEvent, attempt: number): readonly [number, number] {
  switch (by) {
    case 'claim':
      return [attempt + 1, attempt + 1]
    case 'replay':
    case 'replace':
      return [0, 0]
    case 'rescue':
      // Whether a lost worker uses an attempt is a policy; crashes are counted apart.
      return [attempt - 1, attempt]
    case 'release-undelivered':
      return [attempt - 1, to === 'cancelled' ? attempt : attempt - 1]
    case 'settle':
      if (settlement !== 'release' && settlement !== 'snooze') return [attempt, attempt]
      // A cancel that was waiting for this moment makes it final, where the number is only history.
      return [attempt - 1, to === 'cancelled' ? attempt : attempt - 1]
    default:
      return [attempt, attempt]
  }
}
