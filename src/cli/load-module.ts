/** Loads a user's module by path: TypeScript through jiti, everything else with Node's own loader. */
import { stat } from 'node:fs/promises'
import { extname, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { HoldfastError } from '../errors.ts'
import { ModuleMissing } from './exit.ts'

const TYPESCRIPT: ReadonlySet<string> = new Set(['.ts', '.mts', '.cts', '.tsx'])
const GUESSES = ['.ts', '.js', '.mts', '.mjs', '.cjs'] as const

export async function loadModule(file: string, cwd: string): Promise<object> {
  const path = resolve(cwd, file)
  await refuseWhatIsNoFile(path, file)
  try {
    const loading: Promise<unknown> = TYPESCRIPT.has(extname(path))
      ? loadTypeScript(path)
      : import(pathToFileURL(path).href)
    return (await loading) as object
  } catch (cause) {
    throw new HoldfastError('HF_BAD_MODULE', `Could not load ${file}.`, { cause, hint: hintFor(cause, file) })
  }
}

async function loadTypeScript(path: string): Promise<unknown> {
  // Imported lazily: a compiler is a lot to load if the module is JavaScript.
  const { createJiti } = await import('jiti')
  // jiti leaves JavaScript imports to Node, so the module's `holdfast` is the copy that runs this code.
  return createJiti(path).import(path)
}

async function refuseWhatIsNoFile(path: string, file: string): Promise<void> {
  const found = await stat(path).catch(() => undefined)
  if (found?.isFile() === true) return
  if (found !== undefined) {
    throw new HoldfastError('HF_BAD_MODULE', `${file} is not a file.`, {
      hint: 'Name the module that exports the jobs, such as jobs.ts.',
    })
  }
  const guess = await firstFile(GUESSES.map((ending) => `${path}${ending}`))
  throw new ModuleMissing(`There is no file ${path}.`, {
    hint:
      guess === undefined
        ? 'Check the path; it is relative to the current folder.'
        : `Did you mean ${file}${extname(guess)}?`,
  })
}

async function firstFile(paths: readonly string[]): Promise<string | undefined> {
  for (const path of paths) if ((await stat(path).catch(() => undefined))?.isFile() === true) return path
  return undefined
}

function hintFor(cause: unknown, file: string): string {
  // Node prints the location of a syntax error only if the error ends the program.
  if (cause instanceof SyntaxError) return `Run "node ${file}" to see the place.`
  return 'Check that the module loads on its own; --verbose prints the whole stack.'
}
