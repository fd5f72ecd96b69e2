/** Reads the names of workers and checks; the rules are those for jobs. */
import { HoldfastError } from '../errors.ts'
import { NAME } from './definition.ts'
import { show } from './show.ts'

export function readName(name: unknown, what: string): string {
  if (typeof name === 'string' && NAME.test(name)) return name
  throw new HoldfastError('HF_BAD_OPTION', `${show(name)} is not a name of a ${what}.`, {
    hint: "Use 1 to 200 letters, digits and _ . : / @ - without spaces, such as 'mail'.",
  })
}
