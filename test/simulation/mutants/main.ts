/**
 * Hunts all mutants of the simulation (or those whose name contains a text), two at a time, and prints which rule caught each
 * at which seed. `write` keeps that in caught.json, which the fault tests hold; what is known there of mutants that were not
 * hunted, or that survived, stays.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { hunt, HUNT_MINUTES, type Caught } from './hunt.ts'
import { MUTANTS, type Mutant } from './mutants.ts'

const SEEDS = 500
const AT_ONCE = 2

export async function huntInSimulation({ only, write }: { only: string; write: boolean }): Promise<void> {
  const waiting = MUTANTS.filter(({ name }) => name.includes(only))
  const caught = new Map<string, Caught>()
  const huntOneAfterAnother = async (): Promise<void> => {
    for (let mutant = waiting.shift(); mutant !== undefined; mutant = waiting.shift())
      console.log(`${mutant.name.padEnd(56)} ${await result(mutant, caught)}`)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, huntOneAfterAnother))
  if (write) {
    const file = fileURLToPath(new URL('caught.json', import.meta.url))
    const before = JSON.parse(readFileSync(file, 'utf8')) as Record<string, Caught>
    const inOrder = MUTANTS.map(({ name }) => [name, caught.get(name) ?? before[name]])
    writeFileSync(file, JSON.stringify(Object.fromEntries(inOrder), null, 2) + '\n')
  }
}

async function result(mutant: Mutant, caught: Map<string, Caught>): Promise<string> {
  try {
    const found = await hunt(mutant, {
      from: mutant.fromSeed ?? 1,
      seeds: SEEDS,
      minutes: HUNT_MINUTES,
      timeoutMs: 900_000,
    })
    if (found === null) throw new Error(`SURVIVED ${SEEDS} seeds`)
    caught.set(mutant.name, found)
    return `${found.rule} at seed ${found.seed}`
  } catch (error) {
    process.exitCode = 1
    return String(error)
  }
}
