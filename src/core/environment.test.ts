import { describe, expect, test } from 'vitest'
import { readEnvironment } from './environment.ts'

describe('the environment', () => {
  test('need not say anything', () => {
    const nothing = {
      store: undefined,
      pollMs: undefined,
      batchSize: undefined,
      maxRetries: undefined,
      concurrency: undefined,
    }
    expect(readEnvironment({})).toEqual(nothing)
    expect(readEnvironment({ PATH: '/bin', HOLDFAST_STORE: '', JOB_MAX_RETRIES: ' ' })).toEqual(nothing)
  })

  test('says where and how jobs run', () => {
    expect(
      readEnvironment({
        HOLDFAST_STORE: 'memory:',
        JOB_POLL_INTERVAL: '250',
        JOB_BATCH_SIZE: '10',
        JOB_MAX_RETRIES: '3',
        WORKER_CONCURRENCY: ' 20\n',
      }),
    ).toEqual({ store: 'memory:', pollMs: 250, batchSize: 10, maxRetries: 3, concurrency: 20 })
  })

  test.each([
    ['JOB_POLL_INTERVAL', 'pollMs', 1, 3_600_000],
    ['JOB_BATCH_SIZE', 'batchSize', 1, 1_000],
    ['JOB_MAX_RETRIES', 'maxRetries', 0, 32_766],
    ['WORKER_CONCURRENCY', 'concurrency', 1, 10_000],
  ] as const)('takes %s as a whole number within its limits', (name, field, min, max) => {
    const read = (text: string): unknown => readEnvironment({ [name]: text })[field]
    expect([read(String(min)), read(String(max))]).toEqual([min, max])
    for (const text of [
      String(min - 1),
      String(max + 1),
      '1.5',
      '1e3',
      '0x10',
      'ten',
      '5s',
      '1_000',
      '+5',
      '99999999999999999999',
    ]) {
      expect(() => read(text), text).toThrow(
        expect.objectContaining({
          code: 'HF_BAD_OPTION',
          message: expect.stringMatching(new RegExp(`^.process.env.${name}. is .+\\.$`)),
          hint: expect.stringContaining(`a whole number from ${min} to ${max}`),
        }),
      )
    }
  })
})
