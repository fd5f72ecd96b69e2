/** Reads whole numbers from options and the environment. */
import { HoldfastError } from '../errors.ts'
import { show } from './show.ts'

export function readWhole(value: unknown, option: string, min: number, max: number): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value
  const accepted = `a whole number from ${min} to ${max}`
  throw new HoldfastError('HF_BAD_OPTION', `${option} is ${show(value)}; it must be ${accepted}.`, {
    hint: `Use ${accepted}.`,
  })
}
