/** Where one run happens: a contender, a place of its own for its jobs, its processes; all of it is gone afterwards. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Child, type ChildProgram } from './children.ts'
import type { ChildConfig, Contender } from './protocol.ts'
import type { ContestServer } from './server.ts'
import type { CommonSizes } from './sizes.ts'

export interface StageParts<Server extends ContestServer, Sizes extends CommonSizes> {
  readonly server: Server
  readonly program: ChildProgram
  readonly sizes: Sizes
  /** The `index.js` of each build of Holdfast, by contender. */
  readonly builds: ReadonlyMap<Contender, string>
  /** The part of a backlog that a contender gets if it is too slow for all of it. */
  readonly shares: ReadonlyMap<Contender, number>
  /** For what a figure can't say. */
  readonly note: (text: string) => void
}

const folders = new Set<string>()
process.on('exit', () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

const WAIT_MS = 900_000

export class Stage<Server extends ContestServer = ContestServer, Sizes extends CommonSizes = CommonSizes> {
  readonly server: Server
  readonly sizes: Sizes
  readonly contender: Contender
  readonly url: string
  readonly #parts: StageParts<Server, Sizes>
  readonly #children = new Set<Child>()
  readonly #folders: string[] = []

  private constructor(parts: StageParts<Server, Sizes>, contender: Contender, url: string) {
    this.server = parts.server
    this.sizes = parts.sizes
    this.contender = contender
    this.url = url
    this.#parts = parts
  }

  static async use<T, Server extends ContestServer, Sizes extends CommonSizes>(
    parts: StageParts<Server, Sizes>,
    contender: Contender,
    work: (stage: Stage<Server, Sizes>) => Promise<T>,
  ): Promise<T> {
    const stage = new Stage(parts, contender, await parts.server.createPlace())
    try {
      return await work(stage)
    } finally {
      await stage.#dispose()
    }
  }

  /** The same contender in a place of its own, on this server or another. */
  elsewhere<T>(work: (stage: Stage<Server, Sizes>) => Promise<T>, server: Server = this.server): Promise<T> {
    return Stage.use({ ...this.#parts, server }, this.contender, work)
  }

  /** So many jobs of a backlog as this contender gets through in reasonable time. */
  share(jobs: number): number {
    return Math.ceil(jobs * (this.#parts.shares.get(this.contender) ?? 1))
  }

  note(text: string): void {
    this.#parts.note(text)
  }

  /** The `index.js` of the contender, if that is Holdfast. */
  get build(): string {
    return this.#parts.builds.get(this.contender) ?? ''
  }

  /** A process of the contender, with its schema made. */
  async child(config: Partial<ChildConfig> = {}, program: Partial<ChildProgram> = {}): Promise<Child> {
    const child = this.newChild(config, program)
    await child.call('open')
    return child
  }

  /** A process of the contender that has opened nothing. */
  newChild(config: Partial<ChildConfig> = {}, program: Partial<ChildProgram> = {}): Child {
    const { contender, url, build } = this
    const given = { contender, url, aim: 'throughput', history: false, build, ...config } as const
    const child = new Child({ ...this.#parts.program, ...program }, given)
    this.#children.add(child)
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
    await this.server.dropPlace(this.url)
    for (const folder of this.#folders) {
      rmSync(folder, { recursive: true, force: true })
      folders.delete(folder)
    }
  }
}

export function countOf(children: readonly Child[]): number {
  return children.reduce((count, { started }) => count + started, 0)
}
