/** There is no server: a place is a folder on the disk of the temporary folder. */
import { execFileSync } from 'node:child_process'
import { lstatSync, mkdtempSync, readdirSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ContestServer } from '../contest/server.ts'

/** See statfs(2). */
const TMPFS = 0x01021994

const folders = new Set<string>()
process.on('exit', () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

export class SqliteBenchServer implements ContestServer {
  readonly version: string

  private constructor(version: string) {
    this.version = version
  }

  /** `node`: the one whose SQLite is measured. */
  static start(node: string): Promise<SqliteBenchServer> {
    if (statfsSync(tmpdir()).type === TMPFS)
      throw new Error(`${tmpdir()} is in memory, where nothing is synced: set TMPDIR to a folder on a disk.`)
    const version = execFileSync(node, ['-p', 'process.versions.sqlite'], { encoding: 'utf8' }).trim()
    return Promise.resolve(new SqliteBenchServer(version))
  }

  createPlace(): Promise<string> {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-'))
    folders.add(folder)
    return Promise.resolve(`file:${join(folder, 'store')}`)
  }

  dropPlace(url: string): Promise<void> {
    const folder = join(directoryOf(url), '..')
    rmSync(folder, { recursive: true, force: true })
    folders.delete(folder)
    return Promise.resolve()
  }

  /** Nothing that was written before is left for a later sync to wait for. */
  calmDown(): Promise<void> {
    execFileSync('sync')
    return Promise.resolve()
  }

  /** What a store takes of the disk. */
  diskBytes(url: string): number {
    return sizeOf(directoryOf(url))
  }

  /** The processes of the contenders do it all. */
  cpuMicros(): number {
    return 0
  }

  loggedBytes(): Promise<number> {
    return Promise.resolve(0)
  }

  dispose(): Promise<void> {
    return Promise.resolve()
  }
}

export function directoryOf(url: string): string {
  return url.slice('file:'.length)
}

/** With everything in it, in blocks that are taken. */
function sizeOf(path: string): number {
  const stat = lstatSync(path)
  const own = stat.blocks * 512
  if (!stat.isDirectory()) return own
  return readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, name)), own)
}
