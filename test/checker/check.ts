/**
 * Judges a recorded history: which job broke which rule, and what shows it. One pass, in the order of the events; memory
 * goes with the jobs that are live. Where something was found and the history is an array, so that it can be read a second
 * time, all that concerns the job is gathered for the explanation.
 */
import { gatherEvidence } from './evidence.ts'
import type { HistoryEvent } from './history.ts'
import { readBounds, type CheckOptions } from './options.ts'
import type { Rule } from './rule.ts'
import { ALL_RULES } from './rules/index.ts'
import { noTally, tally, type Counted } from './tally.ts'
import type { Violation } from './violation.ts'
import { World } from './world.ts'

export interface Verdict {
  /** At most `maxViolations`, one a rule and job. */
  readonly violations: readonly Violation[]
  readonly violationCount: number
  readonly counted: Counted
}

/** Takes the events one by one, so that a history of any length can be judged while it happens. */
export class Checker {
  readonly #world: World
  readonly #rules: readonly Rule[]
  readonly #listeners: Listeners
  readonly #counted = noTally()

  constructor(options: CheckOptions = {}) {
    this.#world = new World(readBounds(options))
    this.#rules = ALL_RULES.map((AnyRule) => new AnyRule(this.#world))
    this.#listeners = listenersOf(this.#rules)
  }

  take(event: HistoryEvent): void {
    const world = this.#world
    world.enter(event)
    const listening = this.#listeners[event.type]
    // Indexed, because an iterator here costs a tenth of the whole check.
    for (let index = 0; index < listening.length; index++) listening[index]?.on(event)
    tally(this.#counted, event, world.invoked)
    world.leave(event)
  }

  end(): Verdict {
    for (const rule of this.#rules) rule.end()
    const { violations, violationCount } = this.#world
    return { violations, violationCount, counted: this.#counted }
  }
}

export function check(history: Iterable<HistoryEvent>, options: CheckOptions = {}): Verdict {
  const checker = new Checker(options)
  for (const event of history) checker.take(event)
  const verdict = checker.end()
  if (verdict.violations.length === 0 || !Array.isArray(history)) return verdict
  return { ...verdict, violations: gatherEvidence(verdict.violations, history) }
}

type Listeners = Record<HistoryEvent['type'], Rule[]>

function listenersOf(rules: readonly Rule[]): Listeners {
  const listeners: Listeners = {
    begin: [],
    invoke: [],
    answer: [],
    failed: [],
    unknown: [],
    move: [],
    setting: [],
    lease: [],
    run: [],
    stop: [],
    node: [],
    store: [],
    fault: [],
    phase: [],
    snapshot: [],
  }
  for (const rule of rules) for (const type of rule.sees) listeners[type].push(rule)
  return listeners
}
