/** Where one run happens: a contender, a database of its own, its processes; all of it is gone afterwards. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Child } from './children.ts'
import type { ChildConfig } from './protocol.ts'
import type { BenchServer } from './server.ts'
import type { Contender } from './settings.ts'
import type { Sizes } from './sizes.ts'

export interface StageParts {
  readonly server: BenchServer
  /** The Node that children run on, and its flags. */
  readonly node: string
  readonly flags: readonly string[]
  readonly sizes: Sizes
}

const folders = new Set<string>()
process.on('exit', () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

const WAIT_MS = 900_000

export class Stage {
  readonly server: BenchServer
  readonly sizes: Sizes
  readonly contender: Contender
  readonly url: string
  readonly #parts: StageParts
  readonly #children = new Set<Child>()
  readonly #folders: string[] = []

  private constructor(parts: StageParts, contender: Contender, url: string) {
    this.server = parts.server
    this.sizes = parts.sizes
    this.contender = contender
    this.url = url
    this.#parts = parts
  }

  static async use<T>(
    parts: StageParts,
    contender: Contender,
    work: (stage: Stage) => Promise<T>,
  ): Promise<T> {
    const stage = new Stage(parts, contender, await parts.server.createDatabase())
    try {
      return await work(stage)
    } finally {
      await stage.#dispose()
    }
  }

  /** A process of the contender, with its schema made. */
  async child(config: Partial<ChildConfig> = {}): Promise<Child> {
    const { node, flags } = this.#parts
    const { contender, url } = this
    const child = new Child(node, { contender, url, aim: 'throughput', history: false, ...config }, flags)
    this.#children.add(child)
    await child.call('open')
    return child
  }

  /** For a store in a directory. */
  folder(): string {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-'))
    folders.add(folder)
    this.#folders.push(folder)
    return folder
  }

  /** Until the children together have started so many jobs. */
  async started(children: readonly Child[], jobs: number): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new Error(`${countOf(children)} of ${jobs} jobs were started in ${WAIT_MS / 1_000} s.`)),
        WAIT_MS,
      )
      const look = (): void => {
        if (countOf(children) < jobs) return
        clearTimeout(timer)
        resolve()
      }
      for (const child of children) child.onProgress = look
      look()
    })
  }

  async #dispose(): Promise<void> {
    await Promise.all([...this.#children].map((child) => child.dispose()))
    await this.server.dropDatabase(this.url)
    for (const folder of this.#folders) {
      rmSync(folder, { recursive: true, force: true })
      folders.delete(folder)
    }
  }
}

export function countOf(children: readonly Child[]): number {
  return children.reduce((count, { started }) => count + started, 0)
}
