/** Tells people of a violation: the rule in words, the job, what is wrong, and its events in order as short lines. */
import type { AnswerEvent, Call, HistoryEvent, MoveEvent, Reply } from './history.ts'
import { RULES, type Violation } from './violation.ts'

export function explain(violation: Violation): string {
  const { rule, job, text, events } = violation
  const head = `${rule}: ${RULES[rule]}`
  const what = job === null ? `  ${text}` : `  job ${job}: ${text}`
  return [head, what, ...events.map((event) => `    ${line(event, job)}`)].join('\n')
}

/** One event as one line; what belongs to another job than the one in question names it. */
export function line(event: HistoryEvent, job: string | null = null): string {
  return `${String(event.seq).padStart(7)}  ${`${event.t} ms`.padStart(12)}  ${words(event, job)}`
}

function words(event: HistoryEvent, job: string | null): string {
  switch (event.type) {
    case 'begin':
      return `history of ${event.store}${event.seed === undefined ? '' : `, seed ${event.seed}`}`
    case 'invoke':
      return `${event.node} → #${event.op} ${callWords(event.call)}`
    case 'answer':
      return `${event.node} ← #${event.op} ${replyWords(event)}`
    case 'failed':
      return `${event.node} ✗ #${event.op} failed: ${event.error}`
    case 'unknown':
      return `${event.node} ? #${event.op} no answer`
    case 'move':
      return moveWords(event, job)
    case 'setting':
      return `store: queue ${event.queue} ${event.paused ? 'paused' : 'resumed'}`
    case 'lease':
      return `store: worker ${event.worker} ${event.what}${event.expiresAt === null ? '' : `, lasts until ${event.expiresAt}`}`
    case 'run':
      return `${event.node} handler ${event.what}${other(event.job, job)}, token ${event.token}, attempt ${event.attempt}`
    case 'stop':
      return `${event.node} stop ${event.what}${event.what === 'begin' ? `, grace ${event.graceMs} ms` : ''}`
    case 'node':
      return `${event.node} ${event.what}`
    case 'store':
      return `store ${event.what}${event.node === undefined ? '' : ` for ${event.node}`}`
    case 'fault':
      return `fault: ${event.kind}${event.node === undefined ? '' : ` at ${event.node}`}`
    case 'phase':
      return `phase: ${event.phase}`
    case 'snapshot':
      return `snapshot: ${event.jobs.map(({ id, state }) => `${state}${other(id, job)}`).join(', ') || 'not there'}`
  }
}

function moveWords(event: MoveEvent, job: string | null): string {
  const { from, to, by, settlement, token, worker, attempt, crashes, queue, rank, dueAt, unique } = event
  const parts = [
    `store: ${from ?? '∅'} → ${to ?? '∅'} by ${by}${settlement === undefined ? '' : ` (${settlement})`}${other(event.job, job)}`,
    ...(token === null ? [] : [`token ${token}`]),
    ...(worker === null ? [] : [`worker ${worker}`]),
    `attempt ${attempt}`,
    ...(crashes === 0 ? [] : [`crashes ${crashes}`]),
    `queue ${queue}`,
    `rank ${rank}`,
    `due ${dueAt}`,
    ...(unique === null ? [] : [`key "${unique.key}" (${unique.hold}) ${unique.held ? 'held' : 'free'}`]),
  ]
  return parts.join(', ')
}

function callWords(call: Call): string {
  switch (call.kind) {
    case 'enqueue':
      return `enqueue, flush ${call.flush}: ${call.jobs.map(({ id, queue, payload }) => `${id} in ${queue} ${short(payload)}`).join(', ')}`
    case 'fire':
      return `fire tick ${call.tick} of schedule ${call.schedule}: ${call.job.id} in ${call.job.queue}`
    case 'cycle': {
      const settles = call.settles.map(({ token, position, to }) => `${to} at ${token}/${position}`)
      const claim = call.claim === null ? [] : [`claim ${call.claim.limit} of ${call.claim.queue}`]
      return `worker ${call.worker}: ${[...settles, ...claim].join(', ')}`
    }
    case 'register':
    case 'retire':
      return `${call.kind} worker ${call.worker}`
    case 'heartbeat':
      return `heartbeat of worker ${call.worker}${call.undelivered.length === 0 ? '' : `, undelivered ${call.undelivered.join(', ')}`}`
    case 'pause':
    case 'resume':
      return `${call.kind} ${call.queue}`
    case 'cancel':
      return `cancel ${call.job}`
    case 'change':
      return `${call.action} ${call.jobs?.join(', ') ?? 'by filter'}`
    case 'other':
      return call.what
    case 'promote':
    case 'rescue':
    case 'prune':
      return call.kind
  }
}

function replyWords({ reply }: AnswerEvent): string {
  switch (reply.kind) {
    case 'enqueue':
      return reply.jobs.map(({ id, outcome }) => `${outcome} ${id}`).join(', ')
    case 'cycle':
      return cycleWords(reply)
    case 'fire':
      return reply.outcome
    case 'heartbeat':
      return reply.alive ? `alive, tokens ${reply.tokens.join(', ') || 'none'}` : 'not alive'
    case 'promote':
      return `promoted ${reply.promoted}`
    case 'rescue':
      return `rescued ${reply.jobs.map(({ id, to }) => `${id} → ${to}`).join(', ') || 'nothing'}`
    case 'prune':
      return `pruned ${reply.pruned}`
    case 'cancel':
      return reply.outcome
    case 'change':
      return `changed ${reply.changed}`
    case 'register':
    case 'retire':
    case 'pause':
    case 'resume':
    case 'other':
      return 'done'
  }
}

function cycleWords({ alive, settled, leases }: Extract<Reply, { kind: 'cycle' }>): string {
  const granted = leases.map(
    ({ token, jobs }) =>
      `lease ${token}: ${jobs.map(({ id, attempt }) => `${id} (attempt ${attempt})`).join(', ')}`,
  )
  const parts = [...(alive ? [] : ['not alive']), ...settled, ...granted]
  return parts.join(', ') || 'nothing'
}

function other(id: string, job: string | null): string {
  return id === job ? '' : ` of ${id}`
}

function short(payload: string): string {
  return payload.length > 40 ? `${payload.slice(0, 40)}…` : payload
}
