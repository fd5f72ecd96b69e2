/**
 * The default logger: tidy lines for a terminal, pino's JSON lines otherwise. Written here because pino brings ten
 * packages for a page of code; users who have pino pass their own.
 */
import { encodeLossy } from '../std/json.ts'
import { describeError, isError } from '../std/text.ts'
import type { Clock } from '../std/clock.ts'
import type { LogLevel } from '../job/record.ts'
import type { PinoLike } from './log.ts'

export interface LineSink {
  write(text: string): unknown
  readonly isTTY?: boolean | undefined
}

export interface ConsoleLoggerOptions {
  readonly sink: LineSink
  readonly clock: Pick<Clock, 'now'>
  readonly level: LogLevel | 'silent'
  readonly format: 'tidy' | 'json'
  readonly colour: boolean
}

const SEVERITY = { debug: 20, info: 30, warn: 40, error: 50, silent: Infinity } as const
const MARK = { debug: '·', info: '●', warn: '▲', error: '✖' } as const
const COLOUR = { debug: '90', info: '32', warn: '33', error: '31' } as const
const FIELD_LIMITS = { maxBytes: 16 * 1024, maxDepth: 8 }

export function consoleLogger(options: ConsoleLoggerOptions): PinoLike {
  const format = options.format === 'json' ? jsonLine : tidyLine
  const at =
    (level: LogLevel) =>
    (fields: object, message: string): void => {
      if (SEVERITY[level] >= SEVERITY[options.level])
        options.sink.write(`${format(options, level, fields, message)}\n`)
    }
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

function jsonLine({ clock }: ConsoleLoggerOptions, level: LogLevel, fields: object, message: string): string {
  const head = { level: SEVERITY[level], time: clock.now() }
  const { json } = encodeLossy({ ...head, ...readable(fields), ...head, msg: message }, FIELD_LIMITS)
  return json ?? JSON.stringify({ ...head, msg: message.slice(0, 1_000) })
}

/** A copy, with the error serialised as pino does. */
function readable(fields: object): Record<string, unknown> {
  try {
    const copy: Record<string, unknown> = { ...fields }
    if (isError(copy['err'])) copy['err'] = shownError(copy['err'])
    // A toJSON here would replace the whole line.
    if (typeof copy['toJSON'] === 'function') delete copy['toJSON']
    return copy
  } catch {
    // A getter threw; the codec can read around it.
    return { fields }
  }
}

function shownError(error: Error): object {
  const { name, message, stack, code } = describeError(error)
  return { type: name, message, stack, code: code ?? undefined }
}

function tidyLine(
  { clock, colour }: ConsoleLoggerOptions,
  level: LogLevel,
  fields: object,
  message: string,
): string {
  const paint = (code: string, text: string): string => (colour ? `\u001b[${code}m${text}\u001b[0m` : text)
  const time = new Date(clock.now()).toISOString().slice(11, 23)
  const { id, worker } = readable(fields)
  const about = [short('job', id), short('worker', worker)].filter((part) => part !== '').join(' ')
  return `${paint('90', time)} ${paint(COLOUR[level], MARK[level])} ${oneLine(message)}${about === '' ? '' : paint('90', `  ${about}`)}`
}

/** Removes line breaks and escapes: messages quote foreign text, and one entry must not look like two lines. */
function oneLine(text: string): string {
  return text.replaceAll(/\p{Cc}+\s*/gu, ' ').trimEnd()
}

/** Show the random end of an id: its beginning is only the time. */
function short(label: string, id: unknown): string {
  return typeof id === 'string' ? `${label} …${id.slice(-6)}` : ''
}
