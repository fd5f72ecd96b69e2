import { describe, expect, test } from 'vitest'
import { ERROR_HINTS } from '../errors.ts'
import { jobNotFound, notFound, scheduleNotFound, type Named } from './not-found.ts'

describe('what is not found', () => {
  test.each<[Named, code: string, hint: RegExp]>([
    ['job', 'HF_UNKNOWN_JOB', /^Define it with hf\.job\(\) .*, or correct the name\.$/],
    ['contract', 'HF_UNKNOWN_JOB', /^Define it with hf\.contract\(\) /],
    ['subscriber', 'HF_UNKNOWN_JOB', /^Define it with hf\.subscribe\(\) /],
    ['queue', 'HF_UNKNOWN_QUEUE', /^Declare it in holdfast\(\{ queues/],
    ['worker', 'HF_UNKNOWN_WORKER', /^Define it with hf\.workers\.define\(\)/],
  ])('is a %s, with code and hint of its own', (kind, code, hint) => {
    expect(notFound(kind, 'mail')).toMatchObject({ code, message: `There is no ${kind} named "mail".` })
    expect(notFound(kind, 'mail').hint).toMatch(hint)
  })

  test('comes with the names that there are', () => {
    expect(notFound('worker', 'post', ['mail', 'reports']).hint).toMatch(/, or use one of: mail, reports\.$/)
  })

  test('need not be a text', () => {
    expect(notFound('queue', 5n).message).toBe('There is no queue named 5n.')
  })

  test('is a job or a schedule that the store does not have', () => {
    expect(jobNotFound('1')).toMatchObject({
      code: 'HF_JOB_NOT_FOUND',
      message: 'Job 1 is not in the store.',
    })
    expect(jobNotFound('1', 'mail').message).toBe('Job "mail" 1 is not in the store.')
    expect(scheduleNotFound('nightly')).toMatchObject({
      code: 'HF_SCHEDULE_NOT_FOUND',
      message: 'There is no schedule "nightly" any more.',
      hint: ERROR_HINTS.HF_SCHEDULE_NOT_FOUND,
    })
  })
})
