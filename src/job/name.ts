/** Reads the names of workers and checks; the rules are those for jobs. */
import { NAME } from './definition.ts'
import { refused } from './options.ts'

export function readName(name: unknown, path: string): string {
  if (typeof name === 'string' && NAME.test(name)) return name
  throw refused(path, name, 'a name of 1 to 200 letters, digits and _ . : / @ - without spaces')
}
