import { describe, expect, test } from 'vitest'
import { holdfast, type Holdfast } from '../holdfast.ts'
import { Hub } from '../hub.ts'
import { findJobs } from './find-jobs.ts'

const quiet = (): Holdfast<'default', object> => holdfast({ store: 'memory:', logger: false })
const run = (): void => undefined
const names = (exports: object): string[] => findJobs(exports, 'jobs.ts').jobs.map((job) => job.name)

describe('the jobs of a module', () => {
  const hf = quiet()
  const a = hf.job({ name: 'a', run })
  const b = hf.job({ name: 'b', run })
  const c = hf.job({ name: 'c', run })

  test('are found by name, in lists and objects, and in the default export', () => {
    expect(names({ a, list: [b], more: { c } })).toEqual(['a', 'b', 'c'])
    expect(names({ default: a })).toEqual(['a'])
    expect(names({ default: [a, b] })).toEqual(['a', 'b'])
    expect(names({ default: { a, nested: { b }, list: [c] } })).toEqual(['a', 'b', 'c'])
    expect(names({ namespace: Object.assign(Object.create(null), { a }) })).toEqual(['a'])
  })

  test('are each run once, however often they are exported', () => {
    expect(names({ a, again: a, default: { a } })).toEqual(['a'])
  })

  test('are not looked for in what is neither a list nor a plain object, nor any deeper', () => {
    class Registry {
      readonly b = b
    }
    expect(names({ a, registry: new Registry(), map: new Map([['c', c]]), deep: { deeper: { c } } })).toEqual(
      ['a'],
    )
    expect(names({ a, hf, nothing: null, number: 1, text: 'x', fn: () => b })).toEqual(['a'])
  })

  test('lead to the holdfast() that they belong to', () => {
    expect(findJobs({ a }, 'jobs.ts').hub).toBe(Hub.of(hf))
  })
})

describe('contracts', () => {
  test('are run where they are implemented, and named where they are not', () => {
    const hf = quiet()
    const done = hf.contract({ name: 'done' })
    const open = hf.contract({ name: 'open' })
    done.implement(run)
    const found = findJobs({ done, open }, 'jobs.ts')
    expect(found.jobs.map((job) => job.name)).toEqual(['done'])
    expect(found.contracts).toEqual(['open'])
  })

  test('that stand beside their implementation are one job', () => {
    const contract = quiet().contract({ name: 'mail' })
    const mail = contract.implement(run)
    expect(names({ contract, mail })).toEqual(['mail'])
  })

  test('alone are not enough, and the error says so', () => {
    const open = quiet().contract({ name: 'open' })
    expect(() => findJobs({ open }, 'jobs.ts')).toThrow('only contracts without an implementation: open')
  })
})

describe('a module that cannot be worked for', () => {
  test('exports nothing of use: the error lists what it does export, and the hint shows how to export a job', () => {
    expect(() => findJobs({ hf: quiet(), port: 80 }, 'jobs.ts')).toThrow(
      expect.objectContaining({
        code: 'HF_NO_JOBS',
        message: 'jobs.ts exports no job (it exports hf, port).',
        hint: expect.stringContaining('export const'),
      }),
    )
    expect(() => findJobs({}, 'jobs.ts')).toThrow('jobs.ts exports no job.')
  })

  test('has jobs of two holdfast() objects: the error names one of each', () => {
    const a = quiet().job({ name: 'a', run })
    const b = quiet().job({ name: 'b', run })
    expect(() => findJobs({ a, list: [b] }, 'jobs.ts')).toThrow(
      expect.objectContaining({
        code: 'HF_BAD_MODULE',
        message: 'jobs.ts exports jobs of 2 holdfast() objects: a and list.0.',
      }),
    )
  })
})
