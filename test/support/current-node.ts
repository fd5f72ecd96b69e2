/** A Node that has `node:sqlite`: the one that runs the tests, or the one of the package `test/current-node`. */
import { existsSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { fileURLToPath } from 'node:url'

const INSTALLED = fileURLToPath(new URL('../current-node/node_modules/node/bin/node', import.meta.url))

/** Its path; undefined if there is none. */
export const currentNode: string | undefined = isBuiltin('node:sqlite')
  ? process.execPath
  : existsSync(INSTALLED)
    ? INSTALLED
    : undefined

/** Behind the name of tests that are skipped without it. */
export const currentNodeMissing =
  currentNode === undefined ? ' (npm ci --prefix test/current-node installs a Node that has node:sqlite)' : ''
