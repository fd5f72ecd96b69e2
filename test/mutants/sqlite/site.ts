import { loadDriver } from '../../../src/stores/sqlite/driver.ts'
import { readSql } from '../../../src/stores/sqlite/engine/db.ts'
import { withoutTransactions, type StoreUnderTest } from '../../../src/stores/conformance/index.ts'
import { SqliteBench } from '../../support/sqlite.ts'
import type { MutantSite } from '../hunt.ts'
import type { EditText } from '../mutant.ts'

export const sqliteSite: MutantSite = { open, load, tests: () => ({}), skip: withoutTransactions }

async function open(edit: EditText, frozen: boolean): Promise<StoreUnderTest> {
  const bench = new SqliteBench({ frozen, edit })
  const under = await bench.open()
  return {
    ...under,
    close: async () => {
      try {
        await under.close()
      } finally {
        await bench.close()
      }
    },
  }
}

async function load(edit: EditText): Promise<void> {
  const { DatabaseSync } = await loadDriver()
  const { tables, statements } = readSql(undefined, edit)
  const database = new DatabaseSync(':memory:')
  try {
    database.exec(tables)
    // Only in a database of somebody else's.
    database.exec(statements.get('makeVersion') ?? '')
    for (const [name, text] of statements) if (name !== 'makeVersion') database.prepare(text)
  } finally {
    database.close()
  }
}
