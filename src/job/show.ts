/** A value for a message: short, on one line, and never the cause of a second error. */
import { cleanText } from '../std/text.ts'

const MAX_CHARS = 100

export function show(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(cleanText(value, MAX_CHARS))
  return typeof value === 'bigint' ? `${value}n` : cleanText(value, MAX_CHARS).replaceAll(/\s*\n\s*/g, ' ')
}
