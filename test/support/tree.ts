import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The repository, with a slash at its end. */
export const root = fileURLToPath(new URL('../../', import.meta.url))

export interface PackageJson {
  readonly version: string
  readonly bin: Readonly<Record<string, string>>
  readonly devDependencies: Readonly<Record<string, string>>
  readonly exports: Readonly<Record<string, string | { readonly types: string; readonly default: string }>>
}

export const packageJson = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as PackageJson

/** The files below a folder of the repository whose names end so, with their text; none if it is missing. */
export function filesIn(folder: string, ending: string): { path: string; text: string }[] {
  if (!existsSync(root + folder)) return []
  return readdirSync(root + folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(ending))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)).replaceAll('\\', '/'))
    .toSorted()
    .map((path) => ({ path, text: readFileSync(root + path, 'utf8') }))
}
