/** A user's project in an empty folder, with this package installed: what `holdfast work` is pointed at. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import { root } from '../../support/tree.ts'
import { Child, holdfastCli } from './child.ts'

export interface Project {
  readonly folder: string
  /** Writes a file, and gives its name back. */
  readonly write: (name: string, text: string) => string
  readonly files: () => string[]
  readonly work: (file: string, ...args: string[]) => Child
  readonly run: (...args: string[]) => Child
  /** A file as a program of its own. */
  readonly node: (file: string) => Child
}

export function project(): Project {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-project-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(root, join(folder, 'node_modules/holdfast'), 'dir')
  const run = (...args: string[]): Child => holdfastCli(args, { cwd: folder })
  return {
    folder,
    write(name, text) {
      writeFileSync(join(folder, name), text)
      return name
    },
    files: () => readdirSync(folder).toSorted(),
    work: (file, ...args) => run('work', file, ...args),
    run,
    node: (file) => new Child(process.execPath, [file], { cwd: folder }),
  }
}
