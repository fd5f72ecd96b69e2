/** The commands of `holdfast`, with their options and help texts. */
import { readFileSync } from 'node:fs'
import { Command, CommanderError, Option } from 'commander'
import { readCount, readDurationArgument, readPositive, readQueues } from './arguments.ts'
import { EXIT, exitCodeOf, type ExitCode } from './exit.ts'
import type { Io } from './io.ts'
import { printError } from './print-error.ts'
import type { NamesOptions } from '../stores/postgres/index.ts'
import type { BackupFlags } from './backup.ts'
import type { DemoFlags } from './demo/demo.ts'
import type { WorkFlags } from './work.ts'

/** Runs one command line to its end; never throws. */
export async function run(args: readonly string[], io: Io): Promise<ExitCode> {
  let code: ExitCode = EXIT.ok
  const program = buildProgram(io, (ended) => {
    code = ended
  })
  try {
    await program.parseAsync(args, { from: 'user' })
    return code
  } catch (error) {
    // Commander has already printed it; exit code 0 means --help or --version.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage
    printError(io, error, { verbose: isVerbose(program, io) })
    return exitCodeOf(error)
  }
}

function isVerbose(program: Command, { env }: Io): boolean {
  return program.opts<{ verbose?: boolean }>().verbose === true || (env['DEBUG'] ?? '') !== ''
}

function buildProgram(io: Io, ended: (code: ExitCode) => void): Command {
  const program = new Command('holdfast')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => io.stdout.write(text),
      writeErr: (text) => io.stderr.write(text),
      getOutHelpWidth: () => io.stdout.columns ?? 80,
      getErrHelpWidth: () => io.stderr.columns ?? 80,
    })
    .showHelpAfterError('(see holdfast --help or holdfast <command> --help)')
    .description('Background jobs that are never lost and never committed twice.')
    .version(readVersion(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'show this help')
    .helpCommand('help [command]', 'show the help of a command')
    .option('--verbose', 'print the whole stack of an error, as with the variable DEBUG')
    .addHelpText('after', EXIT_CODES)
  addWork(program, io, ended)
  addDemo(program, io, ended)
  addSchema(program, io)
  addBackup(program, io)
  return program
}

const EXIT_CODES = `
Exit codes:
  0 ok · 1 failed · 2 wrong usage · 3 not found · 5 store not usable
  130 interrupted, by a second signal or before anything ran`

function addWork(program: Command, io: Io, ended: (code: ExitCode) => void): void {
  program
    .command('work')
    .summary('run a worker for the jobs that a module exports')
    .description(
      'Runs a worker for the jobs that <file> exports: by name, in its default export, or in a list or object.',
    )
    .argument('<file>', 'a JavaScript or TypeScript module')
    .option(
      '-q, --queues <list>',
      'queues to read, optionally with weights: mail=5,default=20 (default: all)',
      readQueues,
    )
    .option(
      '-c, --concurrency <n>',
      'number of jobs to run at once (default: WORKER_CONCURRENCY or 5)',
      readCount,
    )
    .option(
      '--drain <time>',
      'how long running jobs may keep running after a signal (default: 30s)',
      readDurationArgument,
    )
    .option(
      '--poll <time>',
      'how often to poll for jobs (default: JOB_POLL_INTERVAL or 1s)',
      readDurationArgument,
    )
    .option(
      '--lease <time>',
      'how long the worker keeps its jobs without a heartbeat (default: 30s)',
      readDurationArgument,
    )
    .addOption(
      new Option('--log <format>', 'log format (default: tidy on a terminal, otherwise json)').choices([
        'tidy',
        'json',
      ]),
    )
    .addOption(new Option('--log-level <level>', 'minimum log level (default: info)').choices(LEVELS))
    .addHelpText('after', ABOUT_WORK)
    .action(async (file: string, flags: WorkFlags) => {
      const { work } = await import('./work.ts')
      ended(await work(file, flags, io))
    })
}

const LEVELS = ['debug', 'info', 'warn', 'error']

const ABOUT_WORK = `
Logs go to stderr; stdout belongs to your handlers. Where the module gave
holdfast() a logger of its own, that one is used instead.

The first SIGINT or SIGTERM takes no new jobs and lets the running ones finish
for the time of --drain, then aborts them and gives them back without using up
an attempt (exit 0). The second does not wait (exit 130). The third exits at
once.

Examples:
  holdfast work jobs.ts
  holdfast work dist/jobs.js --queues mail=5,default=20 --concurrency 20`

function addDemo(program: Command, io: Io, ended: (code: ExitCode) => void): void {
  program
    .command('demo')
    .summary('watch a worker at work, with nothing installed')
    .description(
      'Enqueues and runs sample jobs, and shows what happens to them. They are kept in .holdfast, or in the store of HOLDFAST_STORE.',
    )
    .option('-s, --seconds <n>', 'stop after this many seconds (default: run until Ctrl-C)', readPositive)
    .option('-r, --rate <n>', 'jobs enqueued per second (default: 12)', readPositive)
    .option('--plain', 'one line per second instead of the live view; the default in a pipe')
    .action(async (flags: DemoFlags) => {
      const { demo } = await import('./demo/demo.ts')
      ended(await demo(flags, io))
    })
}

function addSchema(program: Command, io: Io): void {
  program
    .command('schema')
    .summary('print the SQL of the PostgreSQL store, for your own migrations')
    .description('Prints the SQL that the PostgreSQL store otherwise runs itself on first use.')
    .option('--schema <name>', 'schema for the tables (default: holdfast)')
    .option('--prefix <text>', 'prefix of every table name (default: none)')
    .addHelpText('after', ABOUT_SCHEMA)
    .action(async (flags: NamesOptions) => {
      const { postgresSchema } = await import('../stores/postgres/index.ts')
      io.stdout.write(postgresSchema(flags))
    })
}

const ABOUT_SCHEMA = `
Give postgresStore() the same schema and prefix, and migrate: false.

Examples:
  holdfast schema > migrations/0042_holdfast.sql
  holdfast schema --schema jobs | psql

The script brings an older schema up to date, and can be run again without harm.`

function addBackup(program: Command, io: Io): void {
  program
    .command('backup')
    .summary('copy an embedded store to a file while it is in use')
    .description('Copies a consistent snapshot of an embedded store, and checks the copy.')
    .argument('<file>', 'a new file')
    .option('--store <url>', 'store to copy (default: HOLDFAST_STORE or file:.holdfast)')
    .addHelpText('after', ABOUT_BACKUP)
    .action(async (file: string, flags: BackupFlags) => {
      const { backup } = await import('./backup.ts')
      await backup(file, flags, io)
    })
}

const ABOUT_BACKUP = `
To restore it, stop every process that uses the store, move its directory away,
and put the copy into a new one under the name holdfast.db.

Example:
  holdfast backup jobs-monday.db --store file:/srv/jobs`

function readVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string
  }
  return version
}
