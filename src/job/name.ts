/** Reads the names of workers and checks; the rules are those for jobs. */
import { NAME } from './definition.ts'
import { refused } from './options.ts'

export function readName(name: unknown, path: string): string {
  if (typeof name === 'string' && NAME.test(name)) return name
  const hint = "Use 1 to 200 letters, digits and _ . : / @ - without spaces, such as 'mail'."
  throw refused(path, name, 'a name', hint)
}
