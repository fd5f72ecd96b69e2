/** Parses option values, and rejects invalid ones with what the option accepts. */
import { InvalidArgumentError } from 'commander'
import type { HoldfastError } from '../errors.ts'
import { positive, whole, type Reader } from '../job/options.ts'
import { parseDuration } from '../std/duration.ts'

/**
 * "mail=5,default=20" sets weights, "mail,default" is a list. In a mix of both, a name without a weight has weight 1.
 */
export function readQueues(text: string): Readonly<Record<string, number>> {
  const weights = new Map<string, number>()
  for (const part of text.split(',')) {
    const [name = '', weight = '1', ...rest] = part.split('=').map((piece) => piece.trim())
    if (name === '' || rest.length > 0)
      throw bad(`"${part}" is not a queue. Use mail=5,default=20 or mail,default.`)
    if (weights.has(name)) throw bad(`Queue "${name}" is named twice.`)
    weights.set(name, readNumber(weight, DECIMAL, positive, `The weight of queue "${name}" is "${weight}". `))
  }
  return Object.fromEntries(weights)
}

/**
 * Milliseconds. A number without a unit is refused: in code it means milliseconds, on a command line it is ambiguous.
 */
export function readDurationArgument(text: string): number {
  const ms = parseDuration(text)
  if (ms === undefined) throw bad('Use a number with a unit: 250ms, 30s, 5m, 2h.')
  return ms
}

export function readCount(text: string): number {
  return readNumber(text, DIGITS, whole(1))
}

export function readPositive(text: string): number {
  return readNumber(text, DECIMAL, positive)
}

const DIGITS = /^\d+$/
const DECIMAL = /^\d+(\.\d+)?$/

/** By a reader of options. Number() alone also takes '', '0x10' and '1e3', which are more likely a slip. */
function readNumber(text: string, shape: RegExp, read: Reader<number>, before = ''): number {
  try {
    return read(shape.test(text) ? Number(text) : text, text)
  } catch (error) {
    throw bad(before + (error as HoldfastError).hint)
  }
}

function bad(message: string): InvalidArgumentError {
  return new InvalidArgumentError(message)
}
