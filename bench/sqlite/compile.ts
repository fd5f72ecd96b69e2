/** better-sqlite3, which plainjob needs, for the Node that the contenders run on: npm would compile it for its own. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const BENCH = fileURLToPath(new URL('..', import.meta.url))
const PACKAGE = join(BENCH, 'node_modules/better-sqlite3')
const WORKS = `new (require('better-sqlite3'))(':memory:').close()`

export function compileBetterSqlite(node: string, say: (text: string) => void): void {
  if (spawnSync(node, ['-e', WORKS], { cwd: BENCH, stdio: 'ignore' }).status === 0) return
  say('compiling better-sqlite3')
  const gyp = process.env['npm_config_node_gyp']
  if (gyp === undefined) throw new Error('npm did not tell where node-gyp is: use `npm run bench`.')
  // The headers come with the binary.
  const headers = join(BENCH, `node_modules/node/node_modules/node-${process.platform}-${process.arch}`)
  const { status } = spawnSync(node, [gyp, 'rebuild', '--release', `--nodedir=${headers}`], {
    cwd: PACKAGE,
    stdio: ['ignore', 'ignore', process.stderr],
    env: { ...process.env, npm_config_nodedir: headers, MAKEFLAGS: '-s' },
  })
  if (status !== 0) throw new Error(`node-gyp ended with ${status}: better-sqlite3 needs a C++ compiler.`)
}
