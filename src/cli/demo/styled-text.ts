/** Lines of styled pieces, cut to a visible width with or without colour; sparklines and bars. */

export type Style = 'plain' | 'dim' | 'bold' | 'title' | 'good' | 'warn' | 'bad' | 'accent'

export interface Piece {
  readonly text: string
  readonly style: Style
}

export type Line = readonly Piece[]

const SGR: Record<Style, string> = {
  plain: '',
  dim: '90',
  bold: '1',
  title: '1;36',
  good: '32',
  warn: '33',
  bad: '31',
  accent: '36',
}

export function styled(text: string, style: Style = 'plain'): Piece {
  return { text, style }
}

export function render(line: Line, options: { readonly columns: number; readonly colour: boolean }): string {
  let room = options.columns
  let out = ''
  for (const { text, style } of line) {
    if (room <= 0) break
    const shown = cut(text, room)
    room -= Array.from(shown).length
    out += options.colour && SGR[style] !== '' ? `\u001b[${SGR[style]}m${shown}\u001b[0m` : shown
  }
  return options.colour ? out : out.trimEnd()
}

/**
 * Cuts the text to `width` letters, ending in an ellipsis. Control characters, which would move the cursor, become
 * spaces.
 */
export function cut(text: string, width: number): string {
  const letters = Array.from(text.replace(/\p{Cc}+/gu, ' '))
  if (letters.length <= width) return letters.join('')
  return width <= 0 ? '' : `${letters.slice(0, width - 1).join('')}…`
}

export function left(text: string, width: number): string {
  return cut(text, width).padEnd(width)
}

export function right(text: string, width: number): string {
  return cut(text, width).padStart(width)
}

const LEVELS = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']

/** The last `width` figures, scaled to the highest; right-aligned, so that the newest stays in place. */
export function sparkline(figures: readonly number[], width: number): string {
  const shown = width <= 0 ? [] : figures.slice(-width)
  const highest = Math.max(1, ...shown)
  const letter = (figure: number): string =>
    LEVELS[Math.round((figure / highest) * (LEVELS.length - 1))] ?? ' '
  return shown.map(letter).join('').padStart(Math.max(0, width))
}

export function bar(share: number, width: number): { readonly done: string; readonly left: string } {
  const filled = Math.round(Math.min(1, Math.max(0, share)) * width)
  return { done: '━'.repeat(filled), left: '─'.repeat(Math.max(0, width - filled)) }
}
