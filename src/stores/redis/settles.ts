/** Settles as cycle.lua takes them: by lease, with as little to decode as possible. */
import type { Settlement } from '../../job/settlement.ts'
import { MAX_ATTEMPT_RECORDS, type SettleAnswer, type SettleRequest } from '../store.ts'
import { brokenAnswer } from '../broken-answer.ts'
import { type LeaseSettles, byLease, checkSettles, isForgotten, unknownSettlement } from '../settles.ts'
import type { RedisValue } from './driver.ts'

export interface PackedSettles {
  readonly args: readonly RedisValue[]
  /** From the letters of each lease to one answer for each request. */
  readonly read: (letters: readonly string[]) => SettleAnswer[]
}

const ANSWERS: Readonly<Record<string, SettleAnswer>> = { w: 'written', a: 'already', l: 'lost' }

export function packSettles(settles: readonly SettleRequest[]): PackedSettles {
  checkSettles(settles)
  const leases = byLease(settles)
  const args: RedisValue[] = [leases.length]
  for (const lease of leases) packLease(args, lease)
  return {
    args,
    read(letters) {
      const answers: SettleAnswer[] = settles.map(() => 'lost')
      for (const [index, { places }] of leases.entries()) {
        const text = letters[index] ?? ''
        if (text.length !== places.length)
          throw brokenAnswer('redis', 'a cycle did not answer each of its settles')
        for (const [at, place] of places.entries()) answers[place] = answerOf(text.charAt(at))
      }
      return answers
    },
  }
}

function answerOf(letter: string): SettleAnswer {
  const answer = ANSWERS[letter]
  if (answer === undefined) throw brokenAnswer('redis', `a cycle answered "${letter}" to a settle`)
  return answer
}

type Mode = 'f' | 'c' | 'm'

function packLease(args: RedisValue[], { token, requests }: LeaseSettles): void {
  const mode = modeOf(requests)
  args.push(token, mode, requests.length)
  for (const { position } of requests) args.push(position)
  if (mode === 'f') return
  for (const request of requests) args.push(mode === 'c' ? completedText(request) : mixedText(request))
}

/** All forgotten, all completed without a record of the attempt, or anything. */
function modeOf(requests: readonly SettleRequest[]): Mode {
  let forgotten = 0
  for (const request of requests) {
    if (isForgotten(request)) forgotten++
    else if (request.settlement.type !== 'completed' || request.record) return 'm'
  }
  return forgotten === requests.length ? 'f' : forgotten === 0 ? 'c' : 'm'
}

/** Goes on with the JSON that the script begins and ends. */
function completedText({ settlement, runMs }: SettleRequest): string {
  if (settlement.type !== 'completed') throw new Error(`${settlement.type} is not completed`)
  const { result, resultDropped } = settlement
  return `,${runMs},${resultDropped ? 1 : 0},${result === null ? 'null' : JSON.stringify(result)}`
}

/** Texts are JSON inside, which no script takes apart. */
type Mixed = readonly [kind: string, value?: number | string | false, error?: string | false]

function mixedText(request: SettleRequest): string {
  const { record, keepRecords = MAX_ATTEMPT_RECORDS } = request
  const own = isForgotten(request) ? (['f'] as const) : mixed(request, request.settlement)
  if (!record || own[0] === 'f') return JSON.stringify(own)
  const [kind, value = false, error = false] = own
  const keep = Math.min(keepRecords, MAX_ATTEMPT_RECORDS)
  return JSON.stringify([kind, value, error, JSON.stringify(record), keep])
}

function mixed(request: SettleRequest, settlement: Settlement): Mixed {
  switch (settlement.type) {
    case 'completed':
      return ['c', completedText(request)]
    case 'retry':
      return ['r', Math.round(settlement.delayMs), JSON.stringify(settlement.error)]
    case 'snooze':
      return settlement.error === null
        ? ['s', Math.round(settlement.delayMs)]
        : ['s', Math.round(settlement.delayMs), JSON.stringify(settlement.error)]
    case 'release':
    case 'confirm':
      return ['l']
    case 'dead':
      return ['d', false, JSON.stringify(settlement.error)]
    case 'cancelled':
      return ['x', JSON.stringify(settlement.reason)]
    default:
      return unknownSettlement(settlement)
  }
}
