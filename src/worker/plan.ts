/**
 * What a worker does next, decided without I/O: `plan(state, work, now)` decides what to claim, settle, report and
 * release, and when to wake up. The driver carries it out and records the results in the state. The state is plain
 * data, and randomness is passed in as a number, so that every rule is tested without a store and without a clock.
 *
 * - A worker claims no more than its free slots plus what it finishes in about 50 ms, so that it does not hoard jobs.
 *   Among queues with jobs it follows their weights. A queue that returned fewer jobs than requested is dry until a
 *   wake-up or the next poll.
 * - It usually makes one call at a time: settles and claims that come up meanwhile are sent with the next one. If there
 *   is much to settle or to claim, it makes a second, concurrent call, so that the store and the handlers work at the
 *   same time.
 * - After a call that failed it waits, longer each time.
 * - With each claim it offers the slots that the claim may leave free, so that the store can hand jobs over as they are
 *   enqueued. It withdraws the offer when it stops claiming.
 */
import { jittered, nextPause, type Backoff } from '../std/backoff.ts'
import type { ClaimRequest, Offer } from '../stores/store.ts'

const PREFETCH_MS = 50
/** The rate is measured over this much of the past and at least as much of the present. */
const WINDOW_MS = 50
const MAX_CALLS = 2
/** So many jobs are worth a second call; fewer travel better together, with the next one (64: 5 % more CPU per job). */
const WORTH_A_CALL = 256
/** Give back claimed jobs that haven't started after this long, so that an idle worker can run them. */
export const RELEASE_AFTER_MS = 200
/** Maximum number of jobs in an offer: what one worker takes while others may be idle too. */
const MOST_OFFERED = 16
/** A worker that reads more queues than this makes no offers. */
const MOST_OFFERED_QUEUES = 8
/** An offer outlives the poll that renews it, and not much else: its worker may be gone. */
const OFFER_POLLS = 1.5
const LONGEST_OFFER_MS = 10_000
const BACKOFF: Backoff = { firstMs: 50, longestMs: 2_000 }
/** For failures that last until a person does something, such as missing rights, and for bugs. */
const LASTING_BACKOFF: Backoff = { ...BACKOFF, longestMs: 10_000 }

export interface QueueState {
  readonly name: string
  readonly weight: number
  /** It answered with less than was asked for, and nothing was heard of it since. */
  dry: boolean
  /** Counts wake-ups, so that an empty answer is not believed if a wake-up came after its question. */
  wakeUps: number
  /** Jobs taken, divided by the weight: the queue with the least is next. */
  served: number
}

/** The pause after a failure, longer each time. */
export interface RetryState {
  /** Nothing is tried until then: the last try failed. */
  retryAtMs: number
  /** The pause after the next failure, before jitter. */
  backoffMs: number
}

/** What the driver remembers from one call to the next. Its backoff is that of the calls. */
export interface LoopState extends RetryState {
  readonly pollMs: number
  /** Most jobs in one claim. */
  readonly batchSize: number
  readonly queues: readonly QueueState[]
  /** Where the queue stood that was served last: a queue that comes back starts level with it. */
  level: number
  /** Jobs finished since `windowStartMs`, and how many a millisecond before that. */
  finished: number
  windowStartMs: number
  perMs: number
  nextPollMs: number
  /** No claims until then: a job ran out of resources. */
  noClaimsUntilMs: number
  /** Calls under way. */
  calls: number
  /** One claim at a time: leases arrive in the order of their tokens, and jobs start in it (see `Store.register`). */
  isClaiming: boolean
  /** When the store last answered. */
  answeredMs: number
  /** An offer may be open. */
  offers: boolean
  /** How many more jobs may be handed over under it. */
  offerLeft: number
}

/** What a worker has in hand at the moment. */
export interface Work {
  /** False while the worker stops: it settles what it has and claims nothing. */
  readonly claims: boolean
  readonly freeSlots: number
  /** Plain jobs that wait for a slot. */
  readonly inLine: number
  /** When the first of them was claimed; undefined if there are none. */
  readonly oldestMs: number | undefined
  /** By queue; empty for a worker without batch handlers. */
  readonly batchRoom: ReadonlyMap<string, BatchRoom>
  /** When each batch is ready to start; Infinity for one that is empty. */
  readonly batchReadyMs: readonly number[]
  /** Whether it holds a job that lost a worker before: then it claims no other. */
  readonly holdsSuspect: boolean
  /** Settlements that can be sent. */
  readonly settles: number
  /** Progress or log lines have waited long enough. */
  readonly reportsDue: boolean
  /** Whether jobs that are handed over could start in the order of their leases. */
  readonly takesOffers: boolean
}

/** Room for jobs of batch handlers, beyond what plain jobs get. */
export interface BatchRoom {
  /** How many jobs a free slot takes. */
  readonly perSlot: number
  readonly gathered: number
}

export interface Claim {
  readonly request: ClaimRequest
  readonly wakeUpsBefore: number
}

/** See `Offer` in `store.ts`. */
export type PlannedOffer = Pick<Offer, 'jobs' | 'queues' | 'forMs'>

export interface PlannedCall {
  readonly claim: Claim | null
  /** Each claim has one, so that what was handed over before it and did not arrive is released. */
  readonly offer: PlannedOffer | null
  /** The call is made even if it carries nothing: to see that the store is there. */
  readonly polls: boolean
}

export interface Plan {
  /** Give back what could have been started at this time; then plan again. Null for nothing. */
  readonly giveBackMs: number | null
  /** Make this call. It also takes along all settlements and reports that are there. */
  readonly call: PlannedCall | null
  /** Otherwise plan again at this time at the latest; Infinity if only an event can change the plan. */
  readonly wakeAtMs: number
}

export function newLoopState(
  weights: ReadonlyMap<string, number>,
  { pollMs, batchSize }: { readonly pollMs: number; readonly batchSize: number },
  nowMs: number,
): LoopState {
  return {
    pollMs,
    batchSize,
    queues: [...weights].map(([name, weight]) => ({ name, weight, dry: false, wakeUps: 0, served: 0 })),
    level: 0,
    finished: 0,
    windowStartMs: nowMs,
    perMs: 0,
    nextPollMs: nowMs,
    noClaimsUntilMs: -Infinity,
    ...newRetryState(),
    calls: 0,
    isClaiming: false,
    answeredMs: nowMs,
    offers: false,
    offerLeft: 0,
  }
}

export function newRetryState(): RetryState {
  return { retryAtMs: -Infinity, backoffMs: BACKOFF.firstMs }
}

// ── the decision ─────────────────────────────────────────────────────────────

/** Changes nothing: the same state, work and time always give the same plan. */
export function plan(state: LoopState, work: Work, nowMs: number): Plan {
  // A batch that becomes ready needs a slot, not the store: it starts whatever happens to the calls.
  const readyAtMs = nextReadyMs(work, nowMs)
  if (nowMs < state.retryAtMs) return wait(Math.min(state.retryAtMs, readyAtMs))
  const polls = nowMs >= state.nextPollMs
  const claim = planClaim(state, work, nowMs, polls)
  const offer = claim === null ? planWithdrawal(state, work, nowMs) : planOffer(state, work, claim)
  if (state.calls > 0) {
    // No other call is made before one under way ends, unless there is enough for it.
    const size = Math.max(work.settles, claim?.request.limit ?? 0)
    return state.calls < MAX_CALLS && size >= WORTH_A_CALL ? call({ claim, offer, polls }) : wait(readyAtMs)
  }
  if (isStale(work, nowMs)) return { giveBackMs: nowMs - RELEASE_AFTER_MS, call: null, wakeAtMs: nowMs }
  if (claim !== null || offer !== null || polls || work.settles > 0 || work.reportsDue)
    return call({ claim, offer, polls })
  return wait(wakeAtMs(state, work, nowMs))
}

function call(planned: PlannedCall): Plan {
  return { giveBackMs: null, call: planned, wakeAtMs: Infinity }
}

function wait(untilMs: number): Plan {
  return { giveBackMs: null, call: null, wakeAtMs: untilMs }
}

/** Another worker may run these jobs sooner. */
function isStale({ oldestMs, batchReadyMs }: Work, nowMs: number): boolean {
  const staleMs = nowMs - RELEASE_AFTER_MS
  return (oldestMs !== undefined && oldestMs <= staleMs) || batchReadyMs.some((readyMs) => readyMs <= staleMs)
}

/** When the next batch becomes ready to start; Infinity if none does. */
function nextReadyMs({ batchReadyMs }: Work, nowMs: number): number {
  let nextMs = Infinity
  for (const readyMs of batchReadyMs) if (readyMs > nowMs && readyMs < nextMs) nextMs = readyMs
  return nextMs
}

/** The next poll, the end of a pause, a batch that is ready, or a job that has waited too long. */
function wakeAtMs(state: LoopState, { oldestMs = Infinity, batchReadyMs }: Work, nowMs: number): number {
  let wakeMs = Math.min(state.nextPollMs, oldestMs + RELEASE_AFTER_MS)
  if (nowMs < state.noClaimsUntilMs) wakeMs = Math.min(wakeMs, state.noClaimsUntilMs)
  for (const readyMs of batchReadyMs)
    wakeMs = Math.min(wakeMs, readyMs > nowMs ? readyMs : readyMs + RELEASE_AFTER_MS)
  return wakeMs
}

/** What to claim now, and from which queue; null for nothing. */
function planClaim(state: LoopState, work: Work, nowMs: number, polls: boolean): Claim | null {
  if (!work.claims || state.isClaiming || nowMs < state.noClaimsUntilMs) return null
  const { freeSlots, inLine, batchRoom } = work
  const ahead = Math.floor(rateAt(state, nowMs) * PREFETCH_MS)
  const plain = plainWanted(freeSlots, ahead, inLine)
  let best: QueueState | undefined
  let bestServed = Infinity
  let limit = 0
  for (const queue of state.queues) {
    if (queue.dry && !polls) continue
    const served = queue.dry ? Math.max(queue.served, state.level) : queue.served
    if (served >= bestServed) continue
    const room = batchRoom.get(queue.name)
    const batched =
      room === undefined || room.perSlot === 0
        ? 0
        : batchedWanted(freeSlots * room.perSlot, ahead, room.gathered)
    if (plain <= 0 && batched <= 0) continue
    best = queue
    bestServed = served
    limit = Math.min(Math.max(plain, batched), state.batchSize)
  }
  if (best === undefined) return null
  const request = { queue: best.name, limit, suspects: !work.holdsSuspect }
  return { request, wakeUpsBefore: best.wakeUps }
}

/** Room that the claim may leave. None while another queue may have jobs: the next claim needs it. */
function planOffer(state: LoopState, work: Work, { request }: Claim): PlannedOffer {
  const { pollMs, queues } = state
  const isBusy = queues.some(({ name, dry }) => !dry && name !== request.queue)
  const takes = work.takesOffers && !isBusy && queues.length <= MOST_OFFERED_QUEUES
  return {
    jobs: takes ? Math.max(0, Math.min(work.freeSlots - work.inLine, MOST_OFFERED)) : 0,
    queues: queues.map(({ name }) => name),
    forMs: Math.min(OFFER_POLLS * pollMs, LONGEST_OFFER_MS),
  }
}

/** A worker that claims nothing must not be handed anything either. */
function planWithdrawal(
  { offers, noClaimsUntilMs }: LoopState,
  { claims }: Work,
  nowMs: number,
): PlannedOffer | null {
  const withdraws = offers && (!claims || nowMs < noClaimsUntilMs)
  return withdraws ? { jobs: 0, queues: [], forMs: 0 } : null
}

/** Number of plain jobs to claim, given how many can start, finish soon, and are in line. */
function plainWanted(slots: number, ahead: number, inLine: number): number {
  // Refill at half: a claim for each job that finishes would make the batches small.
  return inLine > 0 && inLine > ahead / 2 ? 0 : slots + ahead - inLine
}

/** The same for batches, which may wait for more of their kind. */
function batchedWanted(fits: number, ahead: number, gathered: number): number {
  return gathered >= fits && gathered - fits > ahead / 2 ? 0 : fits + ahead - gathered
}

/** Jobs that this worker finishes in a millisecond, going by what it finished lately. */
function rateAt({ windowStartMs, perMs, finished }: LoopState, nowMs: number): number {
  const elapsedMs = nowMs - windowStartMs
  return elapsedMs < WINDOW_MS ? perMs : (perMs * WINDOW_MS + finished) / (WINDOW_MS + elapsedMs)
}

// ── what has happened ────────────────────────────────────────────────────────

/** A queue may have work. False if this worker does not read it. */
export function wokenUp(state: LoopState, name: string): boolean {
  const queue = state.queues.find((one) => one.name === name)
  if (queue === undefined) return false
  queue.wakeUps++
  revive(state, queue)
  return true
}

/** Any queue may have work, whatever the wake-ups said. */
export function lookEverywhere(state: LoopState): void {
  for (const queue of state.queues) revive(state, queue)
}

/** An empty queue does not accumulate credit. */
function revive({ level }: LoopState, queue: QueueState): void {
  if (!queue.dry) return
  queue.dry = false
  queue.served = Math.max(queue.served, level)
}

/** `chance` is from 0 to 1: the next poll comes after the interval, give or take a tenth. */
export function callBegun(
  state: LoopState,
  { claim, offer, polls }: PlannedCall,
  nowMs: number,
  chance: () => number,
): void {
  state.calls++
  if (nowMs - state.windowStartMs >= WINDOW_MS) {
    state.perMs = rateAt(state, nowMs)
    state.finished = 0
    state.windowStartMs = nowMs
  }
  if (polls) {
    state.nextPollMs = nowMs + state.pollMs * (0.9 + chance() * 0.2)
    lookEverywhere(state)
  }
  if (claim !== null) state.isClaiming = true
  if (offer !== null) state.offerLeft = 0
  if (offer !== null && offer.jobs > 0) state.offers = true
}

export function callAnswered(state: LoopState, nowMs: number): void {
  state.answeredMs = nowMs
}

/** The claim was answered: the store has granted this many jobs. */
export function claimAnswered(state: LoopState, { request, wakeUpsBefore }: Claim, taken: number): void {
  const queue = state.queues.find((one) => one.name === request.queue)
  if (queue === undefined) return
  state.level = Math.max(state.level, queue.served)
  queue.served += taken / queue.weight
  // An older "empty" must not overtake a wake-up that came after the question was sent.
  if (taken < request.limit && queue.wakeUps === wakeUpsBefore) queue.dry = true
}

/** The store has answered an offer; so many more jobs may be handed over under it. */
export function offerAnswered(state: LoopState, left: number): void {
  state.offers = left > 0
  state.offerLeft = left
}

/** So many jobs were handed over. With the last of an offer, the next claim makes a new one. */
export function handedOver(state: LoopState, jobs: number): void {
  state.offerLeft -= jobs
  if (state.offerLeft <= 0) lookEverywhere(state)
}

export function callSucceeded(state: RetryState): void {
  state.backoffMs = BACKOFF.firstMs
}

/**
 * The pause counts from when the call began: one that hung until its deadline was pause enough. `lasts`: trying again
 * soon cannot help.
 */
export function callFailed(state: RetryState, begunMs: number, lasts: boolean, chance: () => number): void {
  state.retryAtMs = Math.max(state.retryAtMs, begunMs + jittered(state.backoffMs, chance()))
  state.backoffMs = nextPause(lasts ? LASTING_BACKOFF : BACKOFF, state.backoffMs)
}

/** A call has ended, well or badly, and all that it brought is taken in. */
export function callEnded(state: LoopState, claim: Claim | null): void {
  state.calls--
  if (claim !== null) state.isClaiming = false
}
