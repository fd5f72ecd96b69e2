/** The SQL of the schema as text, for people whose migrations are run by something else. */
import { readNames, type NamesOptions } from './names.ts'
import { schemaScript } from './schema.ts'

export function postgresSchema(options: NamesOptions = {}): string {
  return schemaScript(readNames(options))
}
