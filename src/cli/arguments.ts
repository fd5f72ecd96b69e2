/** Parses option values, and rejects invalid ones with what the option accepts. */
import { InvalidArgumentError } from 'commander'
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
    if (!/^\d+(\.\d+)?$/.test(weight) || Number(weight) === 0)
      throw bad(`The weight of queue "${name}" is "${weight}". Use a number above zero.`)
    if (weights.has(name)) throw bad(`Queue "${name}" is named twice.`)
    weights.set(name, Number(weight))
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
  const value = Number(text)
  if (!/^\d+$/.test(text) || value < 1 || !Number.isSafeInteger(value))
    throw bad('Use a whole number, 1 or greater.')
  return value
}

export function readPositive(text: string): number {
  const value = Number(text)
  if (!/^\d+(\.\d+)?$/.test(text) || !(value > 0) || !Number.isFinite(value))
    throw bad('Use a number above zero.')
  return value
}

function bad(message: string): InvalidArgumentError {
  return new InvalidArgumentError(message)
}
