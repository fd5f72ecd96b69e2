/**
 * The terminal during the live view: an alternate screen, redrawn in place; the previous screen is restored at the end.
 */
import { hasColours, type Output } from '../io.ts'
import { render, type Line } from './styled-text.ts'
import type { Size } from './view.ts'

const ESC = '\u001b['
const ENTER = `${ESC}?1049h${ESC}?25l${ESC}?7l`
const LEAVE = `${ESC}?7h${ESC}?25h${ESC}?1049l`
/** Terminals that support these codes show the whole frame at once; others ignore them. */
const FRAME_BEGINS = `${ESC}?2026h${ESC}H`
const FRAME_ENDS = `${ESC}J${ESC}?2026l`

export class Screen {
  readonly #output: Output
  readonly #onExit = (): void => this.leave()
  #entered = false

  constructor(output: Output) {
    this.#output = output
  }

  get size(): Size {
    return { columns: this.#output.columns ?? 80, rows: this.#output.rows ?? 24 }
  }

  enter(): void {
    this.#entered = true
    // Restore cursor and screen however the process ends.
    process.on('exit', this.#onExit)
    this.#output.write(ENTER)
  }

  draw(lines: readonly Line[]): void {
    // Each line erases the rest of the previous frame's line. It must not reach the last column: the cursor stays
    // there, and erasing would remove the last letter. No newline after the last line, because that would scroll.
    const options = { columns: this.size.columns - 1, colour: hasColours(this.#output) }
    const frame = lines.map((line) => `${render(line, options)}${ESC}K`).join('\r\n')
    this.#output.write(`${FRAME_BEGINS}${frame}${FRAME_ENDS}`)
  }

  leave(): void {
    if (!this.#entered) return
    this.#entered = false
    process.off('exit', this.#onExit)
    this.#output.write(LEAVE)
  }
}
