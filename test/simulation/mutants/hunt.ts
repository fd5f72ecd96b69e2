/** Runs the simulation on a copy of the sources with one mutant in it, until a rule is broken or the seeds are used up. */
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Edit, Mutant, Planted } from './mutants.ts'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const CACHE = join(ROOT, 'node_modules/.cache/mutants')

/** How long each run of a hunt is, in simulated time. */
export const HUNT_MINUTES = 5

export interface Caught {
  readonly seed: number
  readonly rule: string
}

export interface HuntOptions {
  /** The first seed. */
  readonly from: number
  readonly seeds: number
  readonly minutes: number
  readonly timeoutMs: number
}

/** Null where the mutant survived. */
export function hunt(mutant: Mutant, options: HuntOptions): Promise<Caught | null> {
  return withMutant(mutant, ['test/simulation', 'test/checker'], (copy) => run(copy, options))
}

/** Copies the sources and these folders, plants the mutant in the copy, and removes the copy afterwards. */
export async function withMutant<T>(
  mutant: Planted,
  folders: readonly string[],
  use: (copy: string) => Promise<T>,
): Promise<T> {
  const copy = join(CACHE, mutant.name.replace(/\W+/g, '-'))
  rmSync(copy, { recursive: true, force: true })
  mkdirSync(copy, { recursive: true })
  try {
    for (const part of ['src', ...folders, 'package.json', 'tsconfig.json'])
      cpSync(join(ROOT, part), join(copy, part), { recursive: true })
    symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'))
    mutate(copy, mutant)
    return await use(copy)
  } finally {
    rmSync(copy, { recursive: true, force: true })
  }
}

function mutate(root: string, mutant: Planted): void {
  edit(root, mutant.name, mutant)
  if (mutant.and !== undefined) edit(root, mutant.name, mutant.and)
}

function edit(root: string, name: string, { file, find, replace }: Edit): void {
  const path = join(root, file)
  const text = readFileSync(path, 'utf8')
  const parts = text.split(find)
  if (parts.length !== 2)
    throw new Error(`mutant "${name}" fits ${file} in ${parts.length - 1} places, not in one`)
  writeFileSync(path, parts.join(replace))
}

function run(copy: string, { from, seeds, minutes, timeoutMs }: HuntOptions): Promise<Caught | null> {
  const main = join(copy, 'test/simulation/main.ts')
  const options = { from, seeds, minutes }
  const args = ['--import', 'tsx', main]
  for (const [name, value] of Object.entries(options)) args.push(`--${name}`, String(value))
  return new Promise((resolve, reject) => {
    execFile(
      process.execPath,
      args,
      { cwd: copy, timeout: timeoutMs, maxBuffer: 64e6 },
      (error, _stdout, stderr) => {
        const found = /^seed (\d+) broke \d+ rules/m.exec(stderr)
        const rule = /^(\S+): /m.exec(stderr.slice(found?.index ?? 0))
        if (found !== null) resolve({ seed: Number(found[1]), rule: rule?.[1] ?? '?' })
        else if (error === null) resolve(null)
        else reject(new Error(`the simulation ended badly: ${stderr.slice(0, 2_000)}`, { cause: error }))
      },
    )
  })
}
