#!/usr/bin/env node
/** Entry point of the `holdfast` command. */
import { systemClock } from '../std/clock.ts'
import { systemRandom } from '../std/random.ts'
import type { Io } from './io.ts'
import { leave } from './leave.ts'
import { run } from './program.ts'

const io: Io = {
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  cwd: process.cwd(),
  signals: process,
  clock: systemClock,
  random: systemRandom,
  exit: (code) => process.exit(code),
}

// A closed pipe, as after `| head`, must not end a worker in the middle of its jobs.
for (const output of [process.stdout, process.stderr]) output.on('error', () => undefined)

// No top-level await: if the module closes its own worker, the await never settles and Node exits with code 13.
void run(process.argv.slice(2), io).then((code) => leave(io, code))
