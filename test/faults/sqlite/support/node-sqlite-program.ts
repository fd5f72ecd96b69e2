/**
 * What a program of a user's does on a current Node, with the build: run a job, hear of the jobs of another process, commit
 * in a database of its own. Prints what happened.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { holdfast } from 'holdfast'
import { sqliteStore, type SqliteDatabase } from 'holdfast/sqlite'

/** What we use of a module that our types do not know. */
interface Handle extends SqliteDatabase {
  prepare(sql: string): { get(): unknown }
}

interface NodeSqlite {
  readonly DatabaseSync: new (path: string) => Handle
}

/** Not a literal, for which the compiler would look. */
const NODE_SQLITE: string = 'node:sqlite'

const [folder = '', role = 'worker'] = process.argv.slice(2)
const say = (line: string): void => void process.stdout.write(`${line}\n`)

if (role === 'sender') await send()
else {
  await work()
  await commitOwn()
}

function open() {
  const hf = holdfast({ store: `file:${join(folder, 'shared')}`, logger: false })
  const greet = hf.job({ name: 'greet', run: ({ job }) => say(`ran ${job.attempt}`) })
  return { hf, greet }
}

async function send(): Promise<void> {
  const { hf, greet } = open()
  await greet.enqueue()
  await hf.close()
}

async function work(): Promise<void> {
  const { hf, greet } = open()
  const completed = new Promise<void>((resolve) => {
    let left = 2
    hf.on('job.completed', () => {
      if (--left === 0) resolve()
    })
  })
  await hf.work({ poll: '30s' })
  await greet.enqueue()
  const sender = fork(process.argv[1] ?? '', [folder, 'sender'])
  await once(sender, 'exit')
  await completed
  await hf.close()
}

async function commitOwn(): Promise<void> {
  const { DatabaseSync } = (await import(NODE_SQLITE)) as NodeSqlite
  const database = new DatabaseSync(join(folder, 'app.db'))
  database.exec('pragma journal_mode = wal; create table paid (id integer primary key)')
  const hf = holdfast({ store: sqliteStore({ database }), logger: false })
  const pay = hf.job({
    name: 'pay',
    run: async ({ commit }) => {
      await commit((tx) => {
        ;(tx as unknown as Handle).exec('insert into paid default values')
        return Promise.resolve()
      })
    },
  })
  const completed = new Promise<void>((resolve) => hf.on('job.completed', () => resolve()))
  await hf.work()
  database.exec('begin immediate')
  pay.enqueueSync(undefined, { tx: database })
  database.exec('commit')
  await completed
  await hf.close()
  say(JSON.stringify(database.prepare('select count(*) as paid from paid').get()))
  database.close()
}
