/** Prints an error for people: what happened, why, where, and what to do. Stacks only on request. */
import { inspect } from 'node:util'
import { describeError } from '../std/text.ts'
import { codeOf } from './exit.ts'
import { hasColours, type Io } from './io.ts'

const MAX_CAUSES = 5

export function printError(io: Io, error: unknown, options: { readonly verbose: boolean }): void {
  const red = (text: string): string => (hasColours(io.stderr) ? `\u001b[31m${text}\u001b[0m` : text)
  const lines = [`${red('error:')} ${headline(error)}`]
  for (const cause of causesOf(error)) {
    lines.push(`  caused by ${headline(cause)}`)
    const place = placeOf(cause)
    if (place !== undefined) lines.push(`    at ${place}`)
  }
  const hint = hintOf(error)
  if (hint !== undefined) lines.push(`  hint: ${hint}`)
  if (options.verbose) lines.push('', inspect(error, { depth: 4 }))
  io.stderr.write(`${lines.join('\n')}\n`)
}

function headline(error: unknown): string {
  const { name, message: text } = describeError(error)
  const message = text.replaceAll(/\s*\n\s*/g, ' ')
  const code = codeOf(error)
  if (code !== undefined) return `${message} [${code}]`
  // "Error: " would repeat the word before it.
  return name === 'Error' || name === 'NonError' ? message : `${name}: ${message}`
}

function causesOf(error: unknown): unknown[] {
  const causes: unknown[] = []
  let at = causeOf(error)
  while (at !== undefined && causes.length < MAX_CAUSES && !causes.includes(at)) {
    causes.push(at)
    at = causeOf(at)
  }
  return causes
}

function causeOf(error: unknown): unknown {
  return error instanceof Error ? error.cause : undefined
}

/** The innermost hint: it belongs to the cause, not to the operation that failed because of it. */
function hintOf(error: unknown): string | undefined {
  const [hint] = [error, ...causesOf(error)]
    .toReversed()
    .map((one) => (one as { hint?: unknown } | null | undefined)?.hint)
    .filter((one) => typeof one === 'string')
  return hint
}

/** The first stack frame in the user's code: "jobs.mjs:3:7". */
function placeOf(error: unknown): string | undefined {
  const stack = error instanceof Error ? (error.stack ?? '') : ''
  const frame = stack
    .split('\n')
    .find((line) => /^\s+at /.test(line) && !/node:|[\\/]node_modules[\\/]/.test(line))
  return frame?.replace(/^\s+at (?:async )?/, '').replaceAll('file://', '')
}
