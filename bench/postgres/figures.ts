import {
  BACKLOG,
  bytes,
  drainKinds,
  HISTORY,
  LATENCY,
  micros,
  millis,
  rate,
  THROUGHPUT,
  WORKER,
  type FigureKind,
} from '../contest/figures.ts'

/** Of a producer and a worker that go on for a while. */
export type LoadFigure<Name extends string> =
  `${Name}${'Rate' | 'First' | 'Last' | 'P50' | 'P99' | 'Server' | 'Client' | 'Log'}`

function loadKinds<Name extends string>(
  name: Name,
  what: string,
): Readonly<Record<LoadFigure<Name>, FigureKind>> {
  return {
    [`${name}Rate`]: rate(what),
    [`${name}First`]: rate(`${what}: first third`),
    [`${name}Last`]: rate(`${what}: last third`),
    [`${name}P50`]: millis(`${what}: enqueue to start p50`),
    [`${name}P99`]: millis(`${what}: enqueue to start p99`),
    [`${name}Server`]: micros(`${what}: CPU a job, server`),
    [`${name}Client`]: micros(`${what}: CPU a job, client`),
    [`${name}Log`]: bytes(`${what}: written to the server's log a job`),
  } as Record<LoadFigure<Name>, FigureKind>
}

export type Slots = 16 | 64 | 256
export type FreshName = `fresh${Slots}${'' | 'Analysed' | 'Used'}`

function freshKinds<S extends Slots>(
  slots: S,
): Readonly<Record<LoadFigure<`fresh${S}${'' | 'Analysed' | 'Used'}`>, FigureKind>> {
  return {
    ...loadKinds(`fresh${slots}`, `fresh server, ${slots} handlers, never analysed`),
    ...loadKinds(`fresh${slots}Analysed`, `fresh server, ${slots} handlers, analysed while empty`),
    ...loadKinds(`fresh${slots}Used`, `fresh server, ${slots} handlers, after 1 M jobs`),
  }
}

/** Of minutes with or without an old transaction, and of what comes after them. */
export type PressureFigure<Name extends string> =
  `${Name}${'Rate' | 'P50' | 'P99' | 'After' | 'Dead' | 'DeadAfter'}`

function pressureKinds<Name extends string>(
  name: Name,
  what: string,
): Readonly<Record<PressureFigure<Name>, FigureKind>> {
  return {
    [`${name}Rate`]: rate(what),
    [`${name}P50`]: millis(`${what}: enqueue to start p50`),
    [`${name}P99`]: millis(`${what}: enqueue to start p99`),
    [`${name}After`]: rate(`${what}: in the minute after`),
    [`${name}Dead`]: { what: `${what}: dead tuples`, unit: 'rows' },
    [`${name}DeadAfter`]: { what: `${what}: dead tuples after`, unit: 'rows' },
  } as Record<PressureFigure<Name>, FigureKind>
}

export const FIGURES = {
  ...THROUGHPUT,
  ...drainKinds('history2', 'drain, history kept, 2 processes'),
  ...HISTORY,
  ...LATENCY,
  ...drainKinds('payload1k', 'drain, payloads of 1 KB'),
  ...BACKLOG,
  scheduled: micros('CPU a job, 10 k waiting and 1 M scheduled beside'),
  oldFirst: rate('1 M jobs under an old transaction: first tenth'),
  oldLast: rate('1 M jobs under an old transaction: last tenth'),
  oldServer: micros('1 M jobs under an old transaction: CPU a job, server'),
  oldClient: micros('1 M jobs under an old transaction: CPU a job, client'),
  urgentP50: millis('1 M jobs under an old transaction: urgent start p50'),
  urgentP99: millis('1 M jobs under an old transaction: urgent start p99'),
  ...freshKinds(16),
  ...freshKinds(64),
  ...freshKinds(256),
  ...loadKinds('steady', 'fresh server, steady 800 a second, 32 handlers'),
  ...pressureKinds('pressureSteadyClean', 'steady 800 a second, clean'),
  ...pressureKinds('pressureSteadyOld', 'steady 800 a second, old transaction'),
  ...pressureKinds('pressureSaturatedClean', 'saturated, clean'),
  ...pressureKinds('pressureSaturatedOld', 'saturated, old transaction'),
  ...WORKER,
} as const satisfies Record<string, FigureKind>

export type PostgresFigure = keyof typeof FIGURES
