/** The SQL of the schema as text, for people whose migrations are run by something else. */
import { migrationScript } from './migrations.ts'
import { readNames, type NamesOptions } from './names.ts'

export interface SchemaOptions extends NamesOptions {
  /** The version that is there already: only what comes after it. @default 0 */
  readonly from?: number
}

export function postgresSchema(options: SchemaOptions = {}): string {
  return migrationScript(readNames(options), options.from)
}
