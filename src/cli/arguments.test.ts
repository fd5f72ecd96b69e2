import { InvalidArgumentError } from 'commander'
import { describe, expect, test } from 'vitest'
import { readCount, readDurationArgument, readPositive, readQueues } from './arguments.ts'

describe('--queues', () => {
  test('takes weights, a list, and both mixed', () => {
    expect(readQueues('mail=5,default=20')).toEqual({ mail: 5, default: 20 })
    expect(readQueues('mail,default')).toEqual({ mail: 1, default: 1 })
    expect(readQueues(' mail = 2.5 , default ')).toEqual({ mail: 2.5, default: 1 })
  })

  test.for([
    '',
    ',',
    'mail,',
    '=5',
    'mail=',
    'mail=0',
    'mail=-1',
    'mail=x',
    'mail=1=2',
    'mail,mail',
    'a=1e999',
  ])('refuses "%s"', (text) => {
    expect(() => readQueues(text)).toThrow(InvalidArgumentError)
  })

  test('does not confuse a queue with a field that every object has', () => {
    expect(Object.keys(readQueues('constructor=2'))).toEqual(['constructor'])
  })
})

describe('a duration', () => {
  test('is a number with its unit', () => {
    expect(readDurationArgument('250ms')).toBe(250)
    expect(readDurationArgument('1.5s')).toBe(1_500)
    expect(readDurationArgument('0s')).toBe(0)
  })

  test.for(['30', 's', '-1s', '1y', ''])('is not "%s", and the message names what is', (text) => {
    expect(() => readDurationArgument(text)).toThrow('250ms, 30s')
  })
})

describe('a number', () => {
  test('is whole and at least 1 where it counts slots', () => {
    expect(readCount('20')).toBe(20)
    for (const text of ['0', '-1', '1.5', '1e3', 'x', '', '99999999999999999999'])
      expect(() => readCount(text), text).toThrow(InvalidArgumentError)
  })

  test('is above zero where it is a rate', () => {
    expect(readPositive('0.5')).toBe(0.5)
    for (const text of ['0', '-1', 'x', '', 'Infinity']) expect(() => readPositive(text), text).toThrow()
  })
})
