/** Wrong settles in the model test: repeated, concurrent, stale, foreign or nonsensical. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { Token } from '../../src/job/ids.ts'
import type { SettleRequest } from '../../src/stores/store.ts'
import { choice, command, pick, type Command } from './command.ts'
import { cycle } from './commands-worker.ts'
import { settlement } from './settlements.ts'

const repeatSettle = command({
  name: 'repeatSettle',
  params: fc.record({ which: choice }),
  when: (model) => model.oldSettles.length > 0,
  run: (model, under, { which }) => {
    const { worker, request } = pick(model.oldSettles, which) ?? assert.fail()
    return cycle(model, under, { worker, settle: [request], claim: null }, true)
  },
})

/** A zombie's settle: any past lease, by its own worker, dead or alive. */
const zombieSettle = command({
  name: 'zombieSettle',
  params: fc.record({ which: choice, position: fc.nat({ max: 4 }), settlement }),
  when: (model) => model.leases.length > 0,
  run: (model, under, { which, position, settlement: wanted }) => {
    const { worker, token, ids } = pick(model.leases, which) ?? assert.fail()
    const request: SettleRequest = { token, position: position % ids.length, settlement: wanted, runMs: 1 }
    return cycle(model, under, { worker, settle: [request], claim: null }, true)
  },
})

const foreignSettle = command({
  name: 'foreignSettle',
  params: fc.record({ which: choice, thief: choice, settlement }),
  when: (model) => model.leases.length > 0 && model.workers.length > 1,
  run: (model, under, { which, thief, settlement: wanted }) => {
    const { worker, token } = pick(model.leases, which) ?? assert.fail()
    const others = model.workers.filter((other) => other.id !== worker)
    const { id } = pick(others, thief) ?? assert.fail()
    const request: SettleRequest = { token, position: 0, settlement: wanted, runMs: 1 }
    return cycle(model, under, { worker: id, settle: [request], claim: null }, true)
  },
})

const nonsenseSettle = command({
  name: 'nonsenseSettle',
  params: fc.record({
    which: choice,
    position: fc.constantFrom(-1, 5, 1_000),
    unknown: fc.boolean(),
    settlement,
  }),
  when: (model) => model.leases.length > 0,
  run: (model, under, { which, position, unknown, settlement: wanted }) => {
    const lease = pick(model.leases, which) ?? assert.fail()
    const token = unknown ? ((2 ** 45 + which) as Token) : lease.token
    const request: SettleRequest = { token, position, settlement: wanted, runMs: 1 }
    return cycle(model, under, { worker: lease.worker, settle: [request], claim: null }, true)
  },
})

/** Several concurrent settles of one position: exactly one wins. */
const crossingSettles = command({
  name: 'crossingSettles',
  params: fc.record({
    which: choice,
    position: fc.nat({ max: 4 }),
    settlements: fc.array(settlement, { minLength: 2, maxLength: 4 }),
  }),
  when: (model) => model.leases.length > 0,
  run: async (model, under, { which, position, settlements }) => {
    const { worker, token, ids } = pick(model.leases, which) ?? assert.fail()
    const requests = settlements.map((wanted): SettleRequest => ({
      token,
      position: position % ids.length,
      settlement: wanted,
      runMs: 1,
    }))
    const answers = await Promise.all(
      requests.map(
        async (request) => (await under.store.cycle({ worker, settle: [request], claim: null })).settled[0],
      ),
    )
    const first = requests[Math.max(0, answers.indexOf('written'))] ?? assert.fail()
    const allowed = model.settleAnswers(worker, first)
    if (!allowed.includes('written')) {
      for (const answer of answers) assert.ok(answer !== undefined && allowed.includes(answer), `${answer}`)
      return []
    }
    const others = answers.filter((answer) => answer === 'already').length
    assert.equal(
      answers.filter((answer) => answer === 'written').length,
      1,
      `exactly one of ${answers.join(', ')}`,
    )
    assert.equal(others, answers.length - 1, 'the others hear that it was settled')
    return [model.settle(first).facts.id]
  },
})

export const fencingCommands: readonly fc.Arbitrary<Command>[] = [
  repeatSettle,
  repeatSettle,
  zombieSettle,
  zombieSettle,
  foreignSettle,
  nonsenseSettle,
  crossingSettles,
]
