/**
 * Groups errors with the same cause: a hash of the error's class, its message without the variable parts, and the first
 * stack frame outside Node and node_modules, without its line number (lines move with every deploy).
 */
import { createHash } from 'node:crypto'

const VARYING: readonly (readonly [RegExp, string])[] = [
  [/\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b/gi, '<id>'],
  [/\b0x[0-9a-f]+\b/gi, '<hex>'],
  [/\b(?=[0-9a-f]*\d)[0-9a-f]{12,}\b/gi, '<hex>'],
  [/(?:\/[\w.@~-]+){2,}/g, '<path>'],
  // An apostrophe inside a word is not a quote: "can't load the user's cart" is not "can't save the user's cart".
  [/"[^"]*"|(?<!\w)'[^']*'(?!\w)|`[^`]*`/g, '<text>'],
  [/\d+(?:\.\d+)?/g, '<n>'],
]

export function normaliseMessage(message: string): string {
  return VARYING.reduce((text, [pattern, name]) => text.replace(pattern, name), message.slice(0, 500))
}

const FRAME = /^\s*at (?:async )?(?:(.+?) \()?(?:file:\/\/)?(.+?):\d+:\d+\)?$/

function firstOwnFrame(stack: string): string {
  for (const line of stack.split('\n')) {
    const match = FRAME.exec(line)
    const file = match?.[2]
    if (file === undefined || file.startsWith('node:') || file.includes('node_modules')) continue
    return `${match?.[1] ?? ''}@${file.replace(/^.*[/\\]/, '')}`
  }
  return ''
}

export function fingerprintOf(error: {
  readonly name: string
  readonly message: string
  readonly stack: string | null
}): string {
  const parts = [
    error.name,
    normaliseMessage(error.message),
    error.stack === null ? '' : firstOwnFrame(error.stack),
  ]
  return createHash('sha256').update(parts.join('\n')).digest('hex').slice(0, 16)
}
