/** What the tests of the documentation need to know about a markdown file. */

interface Block {
  /** Of its first line of code, counted from 1. */
  readonly line: number
  readonly code: string
}

/** The fenced `ts` blocks; one that opens with ```ts ignore is left out. */
export function tsBlocks(text: string): Block[] {
  return fences(text)
    .filter(({ info }) => /^(ts|typescript)$/.test(info))
    .map(({ line, lines }) => ({ line, code: lines.join('\n') }))
}

/** Where relative links and images point, without their #fragment. Links inside of code do not count. */
export function relativeLinks(text: string): string[] {
  const lines = text.split('\n')
  for (const { line, lines: code } of fences(text)) lines.fill('', line - 1, line - 1 + code.length)
  const prose = lines.join('\n').replaceAll(/`[^`\n]*`/g, '')
  const targets = [
    ...prose.matchAll(/\]\(\s*<?([^)\s>]+)>?[^)]*\)/g), // [text](target "title")
    ...prose.matchAll(/^\s*\[[^\]]+\]:\s*<?(\S+?)>?(?:\s|$)/gm), // [name]: target
    ...prose.matchAll(/\b(?:src|href)="([^"]+)"/g),
  ].map(([, target]) => target ?? '')
  return targets
    .filter((target) => !/^([a-z][a-z+.-]*:|#|\/\/)/i.test(target))
    .map((target) => decodeURI(target.replace(/[#?].*$/, '')))
}

interface Fence extends Pick<Block, 'line'> {
  readonly info: string
  readonly lines: string[]
}

function fences(text: string): Fence[] {
  const found: Fence[] = []
  let open: (Fence & { readonly mark: string; readonly indent: number }) | undefined
  for (const [index, raw] of text.split('\n').entries()) {
    const mark = /^( *)(`{3,}|~{3,})\s*(.*)$/.exec(raw)
    if (open === undefined) {
      if (mark)
        open = { mark: mark[2]!, indent: mark[1]!.length, info: mark[3]!.trim(), line: index + 2, lines: [] }
    } else if (mark && mark[3] === '' && mark[2]!.startsWith(open.mark)) {
      found.push(open)
      open = undefined
    } else {
      open.lines.push(raw.slice(Math.min(open.indent, raw.search(/\S|$/))))
    }
  }
  return found
}
