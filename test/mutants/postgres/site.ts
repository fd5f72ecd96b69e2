import { pgExecutor } from '../../../src/stores/postgres/pg/pg-executor.ts'
import { openSqlStore } from '../../support/sql-stores.ts'
import type { MutantSite } from '../hunt.ts'
import type { EditText } from '../mutant.ts'
import { CROSSINGS } from './crossings.ts'

/** Each store in a schema of its own, since the mutant is in its functions. */
export function postgresSite(url: string): MutantSite {
  const open = async (edit: EditText, frozen: boolean) => {
    const executor = pgExecutor({ connectionString: url })
    return openSqlStore({ executor, frozen, edit })
  }
  return {
    open,
    tests: (edit) =>
      Object.fromEntries(
        Object.entries(CROSSINGS).map(([title, crossing]) => [
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
