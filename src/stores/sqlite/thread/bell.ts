/**
 * Tells other processes that something was committed: a byte written to a file that all of them watch. Best effort, as
 * every wake-up is. (Watching the `-wal` file instead is late and loses events: it is written before the commit shows.)
 */
import { closeSync, fstatSync, openSync, watch, writeSync, type FSWatcher } from 'node:fs'

export class Bell {
  readonly #path: string
  readonly #file: number
  #watcher: FSWatcher | undefined

  constructor(path: string) {
    this.#path = path
    this.#file = openSync(path, 'r+')
  }

  /** Its size tells later openings that there is a database. */
  ringFirst(): void {
    if (fstatSync(this.#file).size === 0) this.ring()
  }

  ring(): void {
    try {
      writeSync(this.#file, '.', 0)
    } catch {
      // A full disk: the others look once a second anyway.
    }
  }

  listen(heard: () => void): void {
    if (this.#watcher !== undefined) return
    try {
      this.#watcher = watch(this.#path, heard)
      // Where nothing can be watched (a limit of inotify, a strange file system), the others look once a second.
      this.#watcher.on('error', () => this.deafen())
    } catch {
      this.#watcher = undefined
    }
  }

  deafen(): void {
    this.#watcher?.close()
    this.#watcher = undefined
  }

  close(): void {
    this.deafen()
    closeSync(this.#file)
  }
}
