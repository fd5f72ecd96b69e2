/**
 * One PGlite in this process: started, spoken to one message at a time, ended. It works synchronously: when `send`
 * returns, the work is done, and until then nothing else runs.
 */
import { HoldfastError } from '../../../errors.ts'
import type { SqlValue, Statement } from '../executor.ts'
import { isLostStatement, isStalePlan } from '../server-errors.ts'
import { execute, prepare, readAnswer, simpleQuery } from './wire.ts'
import type { Answer } from './wire.ts'

/** What we use of `@electric-sql/pglite`, by structure: it is not installed everywhere. */
export interface PgliteModule {
  readonly PGlite: {
    readonly defaultStartParams: readonly string[]
    create(options: {
      readonly dataDir?: string
      readonly relaxedDurability: boolean
      readonly startParams: string[]
      readonly onStderr: (line: string) => void
    }): Promise<PgliteInstance>
  }
}

interface PgliteInstance {
  execProtocolRawStream(
    message: Uint8Array,
    options: { readonly syncToFs: boolean; readonly onRawData: (bytes: Uint8Array) => void },
  ): Promise<void>
  close(): Promise<void>
}

export async function loadPglite(): Promise<PgliteModule> {
  try {
    return await import('@electric-sql/pglite')
  } catch (cause) {
    throw new HoldfastError(
      'HF_BAD_STORE',
      'The embedded store needs the package @electric-sql/pglite, which does not load.',
      {
        hint: 'Install it: npm install @electric-sql/pglite. Or use PostgreSQL, or memory: for tests.',
        cause,
      },
    )
  }
}

/** How much write-ahead log to keep. A server's background processes see to that, and there are none here. */
const LOG_MB = 128
const LOG_LENGTH: Statement = {
  name: 'log_length',
  text: `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), redo_lsn) / 1048576 as mb from pg_control_checkpoint()`,
}
/** The server prints a few lines before it gives up. */
const KEPT_LINES = 5

export class Database {
  readonly #instance: PgliteInstance
  /** The statements that are prepared: text by name. */
  readonly #prepared = new Map<string, string>()
  #broken = false

  private constructor(instance: PgliteInstance) {
    this.#instance = instance
  }

  /** In memory where the directory is null. */
  static async start({ PGlite }: PgliteModule, directory: string | null): Promise<Database> {
    const printed: string[] = []
    try {
      const instance = await PGlite.create({
        ...(directory === null ? {} : { dataDir: directory }),
        // An answer means that the write has reached the operating system.
        relaxedDurability: false,
        startParams: [...PGlite.defaultStartParams, '-c', `max_wal_size=${LOG_MB}MB`],
        onStderr: (line) => {
          printed.push(line)
          if (printed.length > KEPT_LINES) printed.shift()
        },
      })
      return new Database(instance)
    } catch (cause) {
      const where = directory === null ? 'in memory' : `in ${directory}`
      const said = printed.length === 0 ? String(cause) : printed.join(' ')
      throw new HoldfastError('HF_BAD_STORE', `The embedded database ${where} does not start: ${said}`, {
        hint: 'Was it made by another version of @electric-sql/pglite, or is the disk full? Otherwise restore it from a backup, or name another directory.',
        cause,
      })
    }
  }

  /** It stopped in the middle of something (out of memory, say), and will not answer any more. */
  get broken(): boolean {
    return this.#broken
  }

  async query({ name, text }: Statement, values: readonly SqlValue[]): Promise<Answer> {
    const isPrepared = this.#prepared.get(name) === text
    const run = execute(name, values)
    const answer = await this.#send(isPrepared ? run : Buffer.concat([prepare(name, text), run]))
    if (answer.error === null) this.#prepared.set(name, text)
    else if (isStalePlan(answer.error) || isLostStatement(answer.error)) this.#prepared.delete(name)
    return answer
  }

  script(sql: string): Promise<Answer> {
    return this.#send(simpleQuery(sql))
  }

  /** Without this the log grows for ever, and with it the time that a start takes after a crash. Outside of transactions. */
  async shortenLog(): Promise<void> {
    const { rows } = await this.query(LOG_LENGTH, [])
    const [length] = rows as readonly { readonly mb: number }[]
    if (length !== undefined && length.mb >= LOG_MB) await this.script('checkpoint')
  }

  /** Writes all to the operating system. */
  close(): Promise<void> {
    return this.#instance.close()
  }

  async #send(message: Buffer): Promise<Answer> {
    const chunks: Buffer[] = []
    try {
      await this.#instance.execProtocolRawStream(message, {
        syncToFs: true,
        // A view into the server's memory, which it writes over.
        onRawData: (bytes) => chunks.push(Buffer.from(bytes)),
      })
    } catch (cause) {
      throw this.#breaks(cause)
    }
    const answer = readAnswer(Buffer.concat(chunks))
    if (answer.status === null) throw this.#breaks(answer.error)
    return answer
  }

  #breaks(cause: unknown): HoldfastError {
    this.#broken = true
    return new HoldfastError('HF_STORE_UNREACHABLE', 'The embedded database stopped.', { cause })
  }
}
