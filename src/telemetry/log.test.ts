import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import { DependencyDown } from '../errors.ts'
import type { Events } from '../job/events.ts'
import type { LogLevel } from '../job/record.ts'
import { Emitter } from '../std/emitter.ts'
import { logEvents, type PinoLike } from './log.ts'

const facts = {
  id: '017f22e2-79b0-7cc3-98c4-dc0c0c07398f',
  job: 'mail',
  queue: 'default',
  worker: 'w1',
  attempt: 2,
  maxAttempts: 4,
  correlationId: 'c1',
}
const end = { ...facts, waitMs: 12, durationMs: 1_240 }
const error = Object.assign(new Error('connection reset'), { code: 'ECONNRESET' })
const failure = { ...end, error, kind: 'transient', fingerprint: 'abc' } as const

const tick = { schedule: 'nightly', job: 'report', jobId: '1', tick: new Date(0), lateMs: 2_500 }

type Line = [level: LogLevel, text: string]
/** Each event at least once; an event that is missing here does not compile. */
const SAMPLES: { readonly [Name in keyof Events]: readonly (readonly [Events[Name], Line])[] } = {
  'job.enqueued': [
    [{ id: '1', job: 'mail', queue: 'default', duplicate: false }, ['debug', 'mail enqueued']],
    [{ id: '1', job: 'mail', queue: 'default', duplicate: true }, ['debug', 'mail already enqueued']],
  ],
  'job.started': [[{ ...facts, waitMs: 3 }, ['debug', 'mail started, attempt 2 of 4']]],
  'job.completed': [[end, ['info', 'mail completed in 1.2s']]],
  'job.failed': [
    [
      { ...failure, final: false, retryInMs: 2_000 },
      ['warn', 'mail failed, attempt 2 of 4 (transient), retry in 2s: connection reset'],
    ],
    [
      { ...failure, kind: 'permanent', final: true, retryInMs: null },
      ['error', 'mail failed, attempt 2 of 4 (permanent), dead letter: connection reset'],
    ],
  ],
  'job.snoozed': [
    [{ ...end, delayMs: 300_000, error: null }, ['info', 'mail snoozed for 5m']],
    [
      { ...end, delayMs: 30_000, error: new DependencyDown('Stripe') },
      ['info', 'mail parked for 30s: Stripe is down.'],
    ],
  ],
  'job.released': [[end, ['debug', 'mail released']]],
  'job.cancelled': [
    [{ ...end, reason: null }, ['info', 'mail cancelled']],
    [{ ...end, reason: 'by hand' }, ['info', 'mail cancelled: by hand']],
  ],
  'commit.lost': [[end, ['error', 'mail committed, but the store lost the commit; the job runs again']]],
  'job.lost': [[end, ['warn', 'mail was taken over by another worker; nothing was written']]],
  'job.progress': [
    [{ ...facts, done: 3, total: 10, note: null }, ['debug', 'mail at 3 of 10']],
    [{ ...facts, done: 3, total: null, note: 'x' }, ['debug', 'mail at 3']],
  ],
  'job.log': (['debug', 'info', 'warn', 'error'] as const).map(
    (level) => [{ ...facts, level, message: 'hello', fields: { n: 1 } }, [level, 'hello']] as const,
  ),
  'job.stuck': [
    [{ ...facts, why: 'timeout' }, ['error', 'mail ignored its abort signal (timeout) and is still running']],
  ],
  'job.unhandled': [
    [{ ...facts, error }, ['error', 'mail left behind a promise that rejected: connection reset']],
  ],
  'job.rescued': [
    [
      { id: '1', job: 'mail', queue: 'default', worker: 'w1', crashes: 2, to: 'dead' },
      ['warn', 'mail rescued from a lost worker, crash 2: dead'],
    ],
  ],
  'worker.started': [
    [
      { worker: 'w1', name: 'mailer', queues: ['mail', 'default'], concurrency: 5 },
      ['info', 'worker started with 5 slots on mail, default'],
    ],
  ],
  'worker.stopping': [[{ worker: 'w1', running: 2 }, ['info', 'worker stopping, 2 running']]],
  'worker.stopped': [[{ worker: 'w1', released: 1 }, ['info', 'worker stopped, 1 released']]],
  'worker.reregistered': [
    [
      { worker: 'w2', before: 'w1', abandoned: 3 },
      ['warn', 'worker lost its lease and reregistered; 3 leases abandoned'],
    ],
  ],
  'worker.blocked': [
    [{ worker: 'w1', blockedMs: 3_240, jobs: [] }, ['warn', 'event loop blocked for 3.2s']],
    [
      {
        worker: 'w1',
        blockedMs: 3_240,
        jobs: [
          { id: '1', job: 'resize' },
          { id: '2', job: 'mail' },
          { id: '3', job: 'resize' },
        ],
      },
      ['warn', 'event loop blocked for 3.2s while resize, mail ran'],
    ],
  ],
  'worker.error': [
    [
      { worker: 'w1', doing: 'settle and claim', error },
      ['error', `worker could not settle and claim: ${error.message}`],
    ],
  ],
  'worker.slowed': [
    [{ worker: 'w1', pauseMs: 1_000, job: 'mail' }, ['warn', 'mail ran out of resources; no claims for 1s']],
  ],
  'deadletters.grew': [
    [
      { queue: 'mail', grown: 3, dead: 17, overMs: 60_000 },
      ['warn', '3 new dead letters in queue mail within 1m; 17 in total'],
    ],
  ],
  'batch.resized': [
    [
      { worker: 'w1', job: 'mail', queue: 'default', from: 10, to: 15, meanMs: 120 },
      ['info', 'batches of mail take 120ms: 15 jobs at a time instead of 10'],
    ],
  ],
  'worker.lost': [[{ worker: 'w9', jobs: 4 }, ['warn', 'worker w9 was lost; 4 of its jobs rescued']]],
  'health.changed': [
    [
      {
        kind: 'worker',
        name: 'mailer',
        worker: 'w1',
        healthy: false,
        problems: ['It is slow.', 'It fails.'],
      },
      ['warn', 'worker mailer is unhealthy: It is slow. It fails.'],
    ],
    [
      { kind: 'check', name: 'disk', worker: null, healthy: true, problems: [] },
      ['warn', 'check disk is healthy again'],
    ],
  ],
  'leader.elected': [[{ candidate: 'w1' }, ['debug', 'elected leader of maintenance']]],
  'leader.lost': [[{ candidate: 'w1' }, ['debug', 'lost the leadership of maintenance']]],
  'duty.failed': [[{ duty: 'prune', error }, ['warn', 'could not prune: connection reset']]],
  'store.down': [[{ doing: 'enqueue', error }, ['error', 'connection reset']]],
  'store.clock': [
    [
      { backMs: 3_600_000, scheduled: 12, schedules: 3 },
      ['warn', 'store clock moved back 1h; 12 scheduled jobs and 3 schedules are due later'],
    ],
  ],
  'store.unusable': [[{ doing: 'enqueue', error }, ['error', 'could not enqueue: connection reset']]],
  'store.up': [[{ downMs: 65_000 }, ['info', 'store answers again after 1m 5s']]],
  'queue.paused': [[{ queue: 'mail' }, ['info', 'queue mail paused']]],
  'queue.resumed': [[{ queue: 'mail' }, ['info', 'queue mail resumed']]],
  'schedule.fired': [[tick, ['debug', 'schedule nightly enqueued report']]],
  'schedule.late': [[tick, ['warn', 'schedule nightly fired 2.5s late']]],
  'schedule.skipped': [
    [{ schedule: 'nightly', job: 'report', ticks: 1 }, ['warn', 'schedule nightly skipped 1 tick']],
    [{ schedule: 'nightly', job: 'report', ticks: 3 }, ['warn', 'schedule nightly skipped 3 ticks']],
  ],
  'schedule.paused': [[{ schedule: 'nightly' }, ['info', 'schedule nightly paused']]],
  'schedule.resumed': [[{ schedule: 'nightly' }, ['info', 'schedule nightly resumed']]],
  'event.unsubscribed': [
    [{ event: 'order.paid', id: '1' }, ['info', 'order.paid published without a subscriber']],
  ],
  'listener.failed': [
    [{ event: 'job.failed', error }, ['error', 'a listener of job.failed failed: connection reset']],
  ],
}
const NAMES = Object.keys(SAMPLES) as (keyof Events)[]
const CASES = NAMES.flatMap((name) =>
  SAMPLES[name].map(([event, [level, text]]) => [name, event, level, text] as const),
)

function setUp() {
  const listenerErrors: unknown[] = []
  const events = new Emitter<Events>((thrown) => listenerErrors.push(thrown))
  const lines: { level: LogLevel; fields: Record<string, unknown>; message: string }[] = []
  const at =
    (level: LogLevel) =>
    (fields: object, message: string): void =>
      void lines.push({ level, fields: fields as Record<string, unknown>, message })
  const logger: PinoLike = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
  return { events, lines, logger, listenerErrors }
}

/** A pino that writes into a list, as users would pass theirs. */
function realPino() {
  const written: string[] = []
  const logger = pino({ level: 'debug', base: null }, { write: (line) => void written.push(line) })
  return { logger, lines: () => written.map((line) => JSON.parse(line) as Record<string, unknown>), written }
}

describe('the log', () => {
  test.each(CASES)('tells of %s in one line', (name, event, level, text) => {
    const { events, lines, logger } = setUp()
    logEvents(events, logger)
    events.emit(name, event)
    expect(lines).toEqual([{ level, message: text, fields: expect.objectContaining({ event: name }) }])
  })

  test.each(CASES)('has the facts of %s beside the words, an error as `err`', (name, event) => {
    const { events, lines, logger } = setUp()
    logEvents(events, logger)
    events.emit(name, event)
    const fields = lines[0]?.fields ?? {}
    for (const [key, value] of Object.entries(event as object)) {
      // What has another place in the line.
      const shownAs = { error: 'err', event: 'of', level: undefined, message: undefined }
      const at = key in shownAs ? shownAs[key as keyof typeof shownAs] : key
      if (at !== undefined && !(key === 'error' && value === null)) expect(fields[at], key).toBe(value)
    }
    expect(fields).not.toHaveProperty('level')
    expect(fields).not.toHaveProperty('error')
  })

  test.each<[keyof Events, outcomes: string[]]>([
    ['job.completed', ['completed']],
    ['job.failed', ['retried', 'dead']],
    ['job.snoozed', ['snoozed', 'snoozed']],
    ['job.released', ['released']],
    ['job.cancelled', ['cancelled', 'cancelled']],
    ['job.lost', ['lost']],
    ['job.started', []],
  ])('says what the attempt came to in %s', (name, outcomes) => {
    const { events, lines, logger } = setUp()
    logEvents(events, logger)
    for (const [event] of SAMPLES[name]) events.emit(name, event)
    expect(lines.flatMap(({ fields }) => fields['outcome'] ?? [])).toEqual(outcomes)
  })

  test('has no fields that no event has: neither payloads nor results', () => {
    const { events, lines, logger } = setUp()
    logEvents(events, logger)
    for (const [name, event] of CASES) events.emit(name, event)
    const keys = new Set(lines.flatMap(({ fields }) => Object.keys(fields)))
    expect(['payload', 'input', 'result', 'output', 'data'].filter((key) => keys.has(key))).toEqual([])
  })

  test("an attempt's start is at debug, its end at info, a retry at warn, a dead letter at error", () => {
    const levels = (name: keyof Events): LogLevel[] => SAMPLES[name].map(([, [level]]) => level)
    expect(
      ['job.started', 'job.completed', 'job.failed'].map((name) => levels(name as keyof Events)),
    ).toEqual([['debug'], ['info'], ['warn', 'error']])
  })

  test('listens to every event, and stops when told', () => {
    const { events, lines, logger } = setUp()
    const stop = logEvents(events, logger)
    expect(NAMES.filter((name) => !events.has(name))).toEqual([])
    stop()
    stop()
    for (const [name, event] of CASES) events.emit(name, event)
    expect(lines).toEqual([])
    expect(NAMES.filter((name) => events.has(name))).toEqual([])
  })

  test('survives a logger that throws', () => {
    const { events, lines, logger, listenerErrors } = setUp()
    logEvents(events, { ...logger, info: () => expect.fail('disk full') })
    events.emit('job.completed', end)
    events.emit('job.lost', end)
    expect(listenerErrors).toHaveLength(1)
    expect(lines).toHaveLength(1)
  })

  test('calls the logger as its own method', () => {
    const { events } = setUp()
    class Counting implements PinoLike {
      count = 0
      debug(): void {
        this.count++
      }
      info(): void {
        this.count++
      }
      warn(): void {
        this.count++
      }
      error(): void {
        this.count++
      }
    }
    const logger = new Counting()
    logEvents(events, logger)
    for (const [name, event] of CASES) events.emit(name, event)
    expect(logger.count).toBe(CASES.length)
  })
})

describe('the log through pino itself', () => {
  const LEVELS = { debug: 20, info: 30, warn: 40, error: 50 }

  test.each(CASES)('writes %s as one line that can be parsed', (name, event, level, text) => {
    const { events, listenerErrors } = setUp()
    const { logger, lines, written } = realPino()
    logEvents(events, logger)
    events.emit(name, event)
    expect(written.join('').match(/\n/g)).toHaveLength(1)
    expect(lines()).toEqual([expect.objectContaining({ level: LEVELS[level], msg: text, event: name })])
    expect(listenerErrors).toEqual([])
  })

  test('serialises an error with its class, message, code and stack', () => {
    const { events } = setUp()
    const { logger, lines } = realPino()
    logEvents(events, logger)
    events.emit('duty.failed', { duty: 'prune', error })
    expect(lines()[0]?.['err']).toEqual({
      type: 'Error',
      message: 'connection reset',
      code: 'ECONNRESET',
      stack: expect.stringContaining('log.test.ts'),
    })
  })

  test('has each key once: a handler cannot replace the level by logging', () => {
    const { events } = setUp()
    const { logger, written } = realPino()
    logEvents(events, logger)
    events.emit('job.log', { ...facts, level: 'warn', message: 'hello', fields: { level: 'x', msg: 'y' } })
    expect(written.join('').match(/"level":/g)).toHaveLength(2)
    expect(JSON.parse(written.join(''))).toMatchObject({
      level: 40,
      msg: 'hello',
      fields: { level: 'x', msg: 'y' },
    })
  })
})
