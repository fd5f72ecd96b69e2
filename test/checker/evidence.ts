/**
 * The second pass: gathers all that concerns the job of a violation, so that it can be told as a story. Events that name
 * many jobs are cut down to the one in question.
 */
import type { AnswerEvent, HistoryEvent, InvokeEvent, Reply } from './history.ts'
import type { Violation } from './violation.ts'

/** Of one job: more than this is no story any more. The first ones tell where it came from, the last ones what happened. */
const FIRST_EVENTS = 40
const LAST_EVENTS = 160

interface Story {
  readonly first: HistoryEvent[]
  readonly last: HistoryEvent[]
}

export function gatherEvidence(
  violations: readonly Violation[],
  history: Iterable<HistoryEvent>,
): Violation[] {
  const stories = new Map<string, Story>()
  for (const { job } of violations) if (job !== null) stories.set(job, { first: [], last: [] })
  const open = new Map<number, InvokeEvent>()
  for (const event of history) {
    if (event.type === 'invoke') open.set(event.op, event)
    for (const job of jobsIn(event, open)) {
      const story = stories.get(job)
      if (story !== undefined) tell(story, job, event, open)
    }
    if (event.type === 'answer' || event.type === 'failed' || event.type === 'unknown') open.delete(event.op)
  }
  return violations.map((violation) => withStory(violation, stories))
}

function withStory(violation: Violation, stories: ReadonlyMap<string, Story>): Violation {
  const story = violation.job === null ? undefined : stories.get(violation.job)
  if (story === undefined) return violation
  const bySeq = new Map<number, HistoryEvent>()
  // What the rule itself points at may be another job's; the story's own events are cut down, so they win.
  for (const event of [...violation.events, ...story.first, ...story.last]) bySeq.set(event.seq, event)
  return { ...violation, events: [...bySeq.values()].sort((a, b) => a.seq - b.seq) }
}

function tell(story: Story, job: string, event: HistoryEvent, open: ReadonlyMap<number, InvokeEvent>): void {
  const told = cutDown(event, job, open)
  if (story.first.length < FIRST_EVENTS) return void story.first.push(told)
  story.last.push(told)
  if (story.last.length > LAST_EVENTS) story.last.shift()
}

function jobsIn(event: HistoryEvent, open: ReadonlyMap<number, InvokeEvent>): string[] {
  switch (event.type) {
    case 'move':
    case 'run':
      return [event.job]
    case 'invoke':
      return jobsOfCall(event)
    case 'answer':
      return jobsOfAnswer(event, open.get(event.op))
    case 'failed':
    case 'unknown': {
      const invoked = open.get(event.op)
      return invoked === undefined ? [] : jobsOfCall(invoked)
    }
    case 'snapshot':
      return event.jobs.map((job) => job.id)
    default:
      return []
  }
}

function jobsOfCall({ call }: InvokeEvent): string[] {
  switch (call.kind) {
    case 'enqueue':
      return call.jobs.map((job) => job.id)
    case 'cycle':
      return [...new Set(call.settles.map((settle) => settle.job))]
    case 'cancel':
      return [call.job]
    case 'change':
      return [...(call.jobs ?? [])]
    default:
      return []
  }
}

function jobsOfAnswer({ reply }: AnswerEvent, invoked: InvokeEvent | undefined): string[] {
  const jobs = new Set(invoked === undefined ? [] : jobsOfCall(invoked))
  if (reply.kind === 'enqueue') for (const { id } of reply.jobs) jobs.add(id)
  if (reply.kind === 'rescue') for (const { id } of reply.jobs) jobs.add(id)
  if (reply.kind === 'cycle') for (const lease of reply.leases) for (const { id } of lease.jobs) jobs.add(id)
  return [...jobs]
}

function cutDown(event: HistoryEvent, job: string, open: ReadonlyMap<number, InvokeEvent>): HistoryEvent {
  if (event.type === 'snapshot') {
    return { ...event, jobs: event.jobs.filter((one) => one.id === job), counters: null }
  }
  if (event.type === 'invoke') return { ...event, call: cutCall(event.call, job) }
  if (event.type === 'answer') return { ...event, reply: cutReply(event.reply, open.get(event.op), job) }
  return event
}

function cutCall(call: InvokeEvent['call'], job: string): InvokeEvent['call'] {
  if (call.kind === 'enqueue') return { ...call, jobs: call.jobs.filter((one) => one.id === job) }
  if (call.kind === 'cycle') return { ...call, settles: call.settles.filter((one) => one.job === job) }
  if (call.kind === 'change' && call.jobs !== null) return { ...call, jobs: [job] }
  return call
}

function cutReply(reply: Reply, invoked: InvokeEvent | undefined, job: string): Reply {
  const call = invoked?.call
  if (reply.kind === 'enqueue' && call?.kind === 'enqueue') {
    return {
      ...reply,
      jobs: reply.jobs.filter(({ id }, index) => id === job || call.jobs[index]?.id === job),
    }
  }
  if (reply.kind === 'rescue') return { ...reply, jobs: reply.jobs.filter(({ id }) => id === job) }
  if (reply.kind !== 'cycle' || call?.kind !== 'cycle') return reply
  return {
    ...reply,
    settled: reply.settled.filter((_, index) => call.settles[index]?.job === job),
    leases: reply.leases
      .map((lease) => ({ ...lease, jobs: lease.jobs.filter(({ id }) => id === job) }))
      .filter((lease) => lease.jobs.length > 0),
  }
}
