/** `npx tsx test/simulation/mutants/main.ts [name]`: hunts all mutants (or those whose name contains it) and prints a table. */
import { hunt } from './hunt.ts'
import { MUTANTS } from './mutants.ts'

const wanted = process.argv[2] ?? ''
let survived = 0
for (const mutant of MUTANTS.filter(({ name }) => name.includes(wanted))) {
  const caught = await hunt(mutant, { seeds: 500, minutes: 5, timeoutMs: 600_000 }).catch(
    (error: Error) => error,
  )
  if (caught === null) survived++
  const shown =
    caught === null
      ? 'SURVIVED'
      : caught instanceof Error
        ? caught.message
        : `${caught.rule} at seed ${caught.seeds}`
  console.log(`${mutant.name.padEnd(52)} ${shown}`)
}
process.exitCode = survived > 0 ? 1 : 0
