/** Single changes to a correct history, each of a kind that a checker worth its name must notice. */
import type { HistoryEvent, MoveEvent, SettleCall, SnapshotEvent, State } from '../history.ts'
import type { RuleName } from '../violation.ts'
import type { Chance } from './random.ts'

type Events = readonly HistoryEvent[]

export interface Mutation {
  readonly name: string
  /** At least one of these must be told. */
  readonly noticedAs: readonly RuleName[]
  /** The changed history, or null where there is nothing of the kind to change. */
  readonly mutate: (events: Events, chance: Chance) => HistoryEvent[] | null
}

// ── how ──────────────────────────────────────────────────────────────────────

/** Replaces one event, chosen at random among those that fit, by others; the rest is numbered anew. */
function replaceOne<Kind extends HistoryEvent>(
  fits: (event: HistoryEvent, index: number, events: Events) => event is Kind,
  change: (event: Kind, chance: Chance) => readonly HistoryEvent[],
): Mutation['mutate'] {
  return (events, chance) => {
    const candidates = events.flatMap((event, index) => (fits(event, index, events) ? [index] : []))
    if (candidates.length === 0) return null
    const at = chance.pick(candidates)
    return renumbered(events.toSpliced(at, 1, ...change(events[at] as Kind, chance)))
  }
}

function renumbered(events: Events): HistoryEvent[] {
  return events.map((event, seq) => ({ ...event, seq }))
}

function move(wanted: (move: MoveEvent) => boolean) {
  return (event: HistoryEvent): event is MoveEvent => event.type === 'move' && wanted(event)
}

const by = (...kinds: readonly MoveEvent['by'][]): ReturnType<typeof move> =>
  move((event) => kinds.includes(event.by))
const isSnapshot = (event: HistoryEvent): event is SnapshotEvent =>
  event.type === 'snapshot' && event.jobs.length > 0
const drop = (): readonly HistoryEvent[] => []
const twice = (event: HistoryEvent): readonly HistoryEvent[] => [event, event]

/** Swaps two moves of one job that follow each other, with nothing of it in between. */
function swapMoves(events: Events, chance: Chance): HistoryEvent[] | null {
  const last = new Map<string, number>()
  const pairs: [number, number][] = []
  events.forEach((event, index) => {
    if (event.type !== 'move') return
    const before = last.get(event.job)
    const earlier = before === undefined ? undefined : events[before]
    // Two moves that leave the job where it was look the same in either order.
    const seen = earlier?.type === 'move' && (earlier.from !== earlier.to || event.from !== event.to)
    if (before !== undefined && seen) pairs.push([before, index])
    last.set(event.job, index)
  })
  if (pairs.length === 0) return null
  const [first, second] = chance.pick(pairs)
  const swapped = [...events]
  const a = events[first] as MoveEvent
  const b = events[second] as MoveEvent
  swapped[first] = { ...b, seq: a.seq, t: a.t }
  swapped[second] = { ...a, seq: b.seq, t: b.t }
  return swapped
}

/** A settle of a lease that was taken away is told to be written, while somebody still remembers the job. */
function reanswer(events: Events, chance: Chance): HistoryEvent[] | null {
  const lost = new Set<string>()
  const forgotten = new Map<string, number>()
  const settles = new Map<number, readonly SettleCall[]>()
  for (const event of events) {
    if (event.type === 'move' && (event.by === 'rescue' || event.by === 'release-undelivered')) {
      lost.add(`${event.job} ${event.token}`)
    }
    if (event.type === 'move' && event.to === null) forgotten.set(event.job, event.seq)
    if (event.type === 'invoke' && event.call.kind === 'cycle') settles.set(event.op, event.call.settles)
  }
  return replaceOne(
    (event): event is Extract<HistoryEvent, { type: 'answer' }> => {
      if (event.type !== 'answer' || event.reply.kind !== 'cycle') return false
      const wasLost = ({ job, token }: SettleCall): boolean =>
        lost.has(`${job} ${token}`) && (forgotten.get(job) ?? Infinity) > event.seq
      const { settled } = event.reply
      return settles.get(event.op)?.some((settle, at) => settled[at] === 'lost' && wasLost(settle)) ?? false
    },
    (event) => {
      if (event.reply.kind !== 'cycle') return [event]
      const settled = event.reply.settled.map(() => 'written' as const)
      return [{ ...event, reply: { ...event.reply, settled } }]
    },
  )(events, chance)
}

/** A rescue takes a job that its worker had started for one that it had not. */
function releaseStarted(events: Events, chance: Chance): HistoryEvent[] | null {
  const started = new Set<string>()
  for (const event of events)
    if (event.type === 'run' && event.what === 'start') started.add(`${event.job} ${event.token}`)
  return replaceOne(
    move(({ by: actor, to, job, token }) => {
      return actor === 'rescue' && to === 'scheduled' && started.has(`${job} ${token}`)
    }),
    (event) => [{ ...event, to: 'ready', crashes: event.crashes - 1 }],
  )(events, chance)
}

function isOver(state: State): boolean {
  return state === 'completed' || state === 'cancelled'
}

const OTHER_STATE: Readonly<Record<State, State>> = {
  scheduled: 'dead',
  blocked: 'dead',
  ready: 'completed',
  running: 'dead',
  completed: 'dead',
  dead: 'completed',
  cancelled: 'completed',
}

// ── what ─────────────────────────────────────────────────────────────────────

export const MUTATIONS: readonly Mutation[] = [
  {
    name: 'a birth is missing',
    noticedAs: ['S1', 'S11'],
    mutate: replaceOne(by('enqueue'), drop),
  },
  {
    name: 'a job is born twice',
    noticedAs: ['S14'],
    mutate: replaceOne(by('enqueue'), twice),
  },
  {
    name: 'nobody enqueued a job',
    noticedAs: ['S2'],
    mutate: replaceOne(by('enqueue'), (event, chance) => [
      event,
      { ...event, job: `ghost${chance.below(9)}` },
    ]),
  },
  {
    name: 'a claim is missing',
    noticedAs: ['S4', 'S2', 'S5', 'S6', 'S11'],
    mutate: replaceOne(by('claim'), drop),
  },
  {
    name: 'a job is claimed twice',
    noticedAs: ['S3'],
    mutate: replaceOne(by('claim'), (event) => {
      const { token, attempt } = event
      return [event, { ...event, token: (token ?? 0) + 0.5, attempt: attempt + 1 }]
    }),
  },
  {
    name: 'a token does not grow',
    noticedAs: ['S5', 'S2'],
    mutate: replaceOne(by('claim'), (event) => [{ ...event, token: 0 }]),
  },
  {
    name: 'a settle is missing',
    noticedAs: ['S4', 'S3', 'S11', 'S5', 'S1'],
    mutate: replaceOne(by('settle'), drop),
  },
  {
    name: 'a settle is written twice',
    noticedAs: ['S4'],
    mutate: replaceOne(by('settle'), twice),
  },
  {
    name: 'a settle is written under another token',
    noticedAs: ['S4'],
    mutate: replaceOne(by('settle', 'rescue', 'release-undelivered'), (event) => {
      return [{ ...event, token: (event.token ?? 0) - 0.5 }]
    }),
  },
  {
    name: 'an attempt is burnt',
    noticedAs: ['S5'],
    mutate: replaceOne(
      move(({ to }) => to !== null),
      (event) => [{ ...event, attempt: event.attempt + 1 }],
    ),
  },
  {
    name: 'a crash is not counted',
    noticedAs: ['S5'],
    mutate: replaceOne(
      move(({ by: actor, to }) => actor === 'rescue' && to !== 'cancelled'),
      (event) => [{ ...event, crashes: event.crashes - 1 }],
    ),
  },
  {
    name: 'a job that ran is released by a rescue',
    noticedAs: ['S18'],
    mutate: releaseStarted,
  },
  {
    name: 'a finished job comes back',
    noticedAs: ['S6'],
    mutate: replaceOne(
      move(({ to }) => to === 'completed' || to === 'cancelled'),
      (event) => [event, { ...event, by: 'promote', from: 'scheduled', to: 'ready' }],
    ),
  },
  {
    name: 'a state changes on the way',
    noticedAs: ['S11', 'S6', 'S3', 'S4', 'S7', 'S1'],
    mutate: replaceOne(
      move(({ from, to }) => from !== null && to !== null),
      (event) => [{ ...event, to: OTHER_STATE[event.to ?? 'ready'] }],
    ),
  },
  {
    name: 'two moves change places',
    noticedAs: ['S1', 'S2', 'S3', 'S4', 'S5', 'S6', 'S11', 'S14'],
    mutate: swapMoves,
  },
  {
    name: 'a key is held or free that is not',
    noticedAs: ['S7'],
    mutate: replaceOne(
      move(({ unique, to }) => unique !== null && to !== null),
      (event) => {
        const { unique } = event
        return unique === null ? [event] : [{ ...event, unique: { ...unique, held: !unique.held } }]
      },
    ),
  },
  {
    name: 'a handler sees another payload',
    noticedAs: ['S12'],
    mutate: (events, chance) => {
      // A zombie may see what was replaced since, so the run must be of the newest lease.
      const current = new Map<string, number>()
      const fits = new Set<HistoryEvent>()
      for (const event of events) {
        if (event.type === 'move' && event.by === 'claim') current.set(event.job, event.token ?? 0)
        if (event.type === 'move' && (event.to === null || isOver(event.to))) current.delete(event.job)
        const seen = event.type === 'run' && event.payload !== undefined
        if (seen && current.get(event.job) === event.token) fits.add(event)
      }
      return replaceOne(
        (event): event is HistoryEvent => fits.has(event),
        (event) => [{ ...event, payload: '"other"' } as HistoryEvent],
      )(events, chance)
    },
  },
  {
    name: 'a job is gone at the end',
    noticedAs: ['S1'],
    mutate: replaceOne(isSnapshot, (event) => [{ ...event, jobs: event.jobs.slice(1), counters: null }]),
  },
  {
    name: 'a job stands otherwise at the end',
    noticedAs: ['S11'],
    mutate: replaceOne(isSnapshot, (event) => {
      const jobs = event.jobs.map((job, index) =>
        index === 0 ? { ...job, state: OTHER_STATE[job.state] } : job,
      )
      return [{ ...event, jobs, counters: null }]
    }),
  },
  {
    name: 'a counter is off by one',
    noticedAs: ['S15'],
    mutate: replaceOne(isSnapshot, (event) => [
      { ...event, counters: { ...event.counters, q: { dead: 1_000 } } },
    ]),
  },
  {
    name: 'a settle is told to be written that was refused',
    noticedAs: ['S4'],
    mutate: reanswer,
  },
  {
    name: 'a pause has no end for those who claim',
    noticedAs: ['S16'],
    mutate: (events, chance) => {
      const pausedClaims = events.flatMap((event, index) =>
        event.type === 'move' && event.by === 'claim' ? [{ index, queue: event.queue }] : [],
      )
      if (pausedClaims.length === 0) return null
      const { index, queue } = chance.pick(pausedClaims)
      const { t } = events[index] as HistoryEvent
      return renumbered(events.toSpliced(index, 0, { seq: 0, t, type: 'setting', queue, paused: true }))
    },
  },
]
