/** The bench's own packages: the peers, and the Node that all contenders run on. */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const FOLDER = new URL('./', import.meta.url)
const LOCK = new URL('package-lock.json', FOLDER)
/** What the last install was made from. */
const STAMP = new URL('node_modules/.installed-from.json', FOLDER)
const NODE = fileURLToPath(new URL('node_modules/node/bin/node', FOLDER))

/** Installs what is missing; returns the path of Node. */
export function install(say: (text: string) => void): string {
  const lock = readFileSync(LOCK, 'utf8')
  if (existsSync(STAMP) && readFileSync(STAMP, 'utf8') === lock && existsSync(NODE)) return NODE
  say('installing the packages of bench/')
  // What npm says goes where we talk, not into the results.
  const { status } = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: FOLDER,
    stdio: ['ignore', process.stderr, process.stderr],
  })
  if (status !== 0) throw new Error(`npm ci in bench/ ended with ${status}.`)
  if (!existsSync(NODE)) {
    throw new Error(`There is no ${NODE}: npm did not run the install script of the package "node".`)
  }
  writeFileSync(STAMP, lock)
  return NODE
}
