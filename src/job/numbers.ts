/** Reads whole numbers from options and the environment. */
import { HoldfastError } from '../errors.ts'

export function readWhole(value: unknown, option: string, min: number, max: number): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value
  throw new HoldfastError('HF_BAD_OPTION', `${option} is ${String(value)}; it must be a whole number.`, {
    hint: `Use a whole number from ${min} to ${max}.`,
  })
}
