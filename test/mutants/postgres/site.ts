import { pgExecutor } from '../../../src/stores/postgres/pg/pg-executor.ts'
import { readNames } from '../../../src/stores/postgres/names.ts'
import { schemaScript } from '../../../src/stores/postgres/schema.ts'
import { openSqlStore } from '../../support/sql-stores.ts'
import type { MutantSite } from '../hunt.ts'
import type { EditText } from '../mutant.ts'
import { CROSSINGS } from './crossings.ts'
import { GUARDS } from './guards.ts'
import type { Crossings } from './held.ts'
import { LOCK_ORDER } from './lock-order.ts'

export const POSTGRES_TESTS: Crossings = { ...CROSSINGS, ...LOCK_ORDER, ...GUARDS }

/** Each store in a schema of its own, since the mutant is in its functions. */
export function postgresSite(url: string): MutantSite {
  const open = async (edit: EditText, frozen: boolean) => {
    const executor = pgExecutor({ connectionString: url })
    return openSqlStore({ executor, frozen, edit })
  }
  return {
    open,
    load: (edit) => load(url, edit),
    tests: (edit) =>
      Object.fromEntries(
        Object.entries(POSTGRES_TESTS).map(([title, crossing]) => [
          title,
          async () => {
            const under = await open(edit, false)
            try {
              await crossing({ under, names: under.names, url })
            } finally {
              await under.close()
            }
          },
        ]),
      ),
    skip: {},
  }
}

/** Schema in which the text of mutants is checked. */
const LOADED = readNames({ schema: 'hf_loaded' })

/** Installs the text twice: once all functions are there, the server can check their bodies. */
async function load(url: string, edit: EditText): Promise<void> {
  const executor = pgExecutor({ connectionString: url })
  try {
    const script = schemaScript(LOADED, edit)
    await executor.script(script)
    await executor.script(script.replace('check_function_bodies = off', 'check_function_bodies = on'))
  } finally {
    await executor.close()
  }
}
