/**
 * Names of domain events, and patterns over them. A name is parts separated by dots; in a pattern, `*` matches exactly
 * one part, and `**` at the end one or more.
 */
import { HoldfastError } from '../errors.ts'
import { show } from './show.ts'

const MAX_CHARS = 200
const PART = '[A-Za-z0-9_-]+'
const NAME = new RegExp(`^${PART}(?:\\.${PART})*$`)
const PATTERN = new RegExp(`^(?:(?:${PART}|\\*)\\.)*(?:${PART}|\\*\\*?)$`)

export function readEventName(name: unknown): string {
  if (typeof name === 'string' && name.length <= MAX_CHARS && NAME.test(name)) return name
  throw new HoldfastError('HF_BAD_EVENT', `${show(name)} is not an event name.`)
}

export function readPattern(pattern: unknown): string {
  if (typeof pattern === 'string' && pattern.length <= MAX_CHARS && PATTERN.test(pattern)) return pattern
  throw new HoldfastError('HF_BAD_PATTERN', `${show(pattern)} is not an event pattern.`)
}

/** Whether it matches a single name only. */
export function isExact(pattern: string): boolean {
  return !pattern.includes('*')
}

export function matches(pattern: string, name: string): boolean {
  if (isExact(pattern)) return pattern === name
  const wanted = pattern.split('.')
  const parts = name.split('.')
  if (wanted.at(-1) === '**') {
    wanted.pop()
    return parts.length > wanted.length && begins(parts, wanted)
  }
  return parts.length === wanted.length && begins(parts, wanted)
}

function begins(parts: readonly string[], wanted: readonly string[]): boolean {
  return wanted.every((part, index) => part === '*' || part === parts[index])
}
