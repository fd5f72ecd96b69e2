/** Another build of Holdfast to run beside this one. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, rmSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Within our node_modules: a package that is unpacked here finds its dependencies. */
const UNPACKED = fileURLToPath(new URL('../../node_modules/.holdfast-other', import.meta.url))

/** From a checkout that was built, its `dist`, or a tarball made by `npm pack`; returns the path of its `index.js`. */
export function otherBuild(path: string): string {
  const given = resolve(path)
  if (!existsSync(given)) throw new Error(`--against: there is no ${given}.`)
  const folder = statSync(given).isDirectory() ? given : unpack(given)
  const found = [join(folder, 'index.js'), join(folder, 'dist', 'index.js')].find((file) => existsSync(file))
  if (found === undefined)
    throw new Error(`--against: ${given} has no index.js and no dist/index.js: build it.`)
  return found
}

function unpack(tarball: string): string {
  rmSync(UNPACKED, { recursive: true, force: true })
  mkdirSync(UNPACKED, { recursive: true })
  execFileSync('tar', ['-xzf', tarball, '-C', UNPACKED])
  return join(UNPACKED, 'package')
}
