import { expect, test } from 'vitest'
import { nearest } from './nearest.ts'

const WORDS = ['concurrency', 'batchSize', 'poll', 'lease', 'at', 'in', 'queues', 'queue']

test.each([
  ['concurency', 'concurrency'],
  ['CONCURRENCY', 'concurrency'],
  ['batchsize', 'batchSize'],
  ['pol', 'poll'],
  ['opll', 'poll'],
  ['leases', 'lease'],
  ['queu', 'queue'],
  ['queuess', 'queues'],
])('%s is near %s', (written, word) => {
  expect(nearest(written, WORDS)).toBe(word)
})

test.each(['', 'x', 'retries', 'shutdown', 'con', 'x'.repeat(1_000_000)])('nothing is near %s', (written) => {
  expect(nearest(written, WORDS)).toBeNull()
})

test('a swap is one step: it is nearer than two replaced letters', () => {
  expect(nearest('drian', ['dries', 'drain'])).toBe('drain')
})
