/** Reads short texts from options: every store can hold them. */
import { HoldfastError } from '../errors.ts'

export function readText(value: unknown, option: string, maxChars: number): string {
  const fits = typeof value === 'string' && value !== '' && value.length <= maxChars
  if (fits && !value.includes('\0') && value.isWellFormed()) return value
  throw new HoldfastError(
    'HF_BAD_OPTION',
    `${option} must be a text of 1 to ${maxChars} characters without NUL bytes or broken characters.`,
  )
}
