/** Figures as an SVG: a panel for each, a bar for each contender. In greys and blues that read on light and dark alike. */
import { show, type Figure } from './report.ts'

const WIDTH = 760
const LEFT = 150
const RIGHT = 110
const BAR = 14
const GAP = 4
const TITLE = 24
const PANEL_GAP = 16

const COLOURS = ['#3b82c4', '#a7b4c2', '#c49a63', '#7a9a72']
const TEXT = '#7b838c'

export function plot(figures: readonly Figure[]): string {
  const names = [...new Set(figures.map(({ who }) => who))]
  const titles = [...new Set(figures.map(({ what }) => what))]
  let y = PANEL_GAP
  const panels = titles.map((what) => {
    const same = figures.filter((figure) => figure.what === what)
    const panel = drawPanel(same, names, y)
    y += TITLE + same.length * (BAR + GAP) + PANEL_GAP
    return panel
  })
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" width="${WIDTH}" height="${y}"`,
    `  font-family="system-ui, sans-serif" font-size="12" fill="${TEXT}" role="img" aria-label="Benchmark figures">`,
    ...panels,
    '</svg>',
    '',
  ].join('\n')
}

function drawPanel(figures: readonly Figure[], names: readonly string[], top: number): string {
  const [first] = figures
  const most = Math.max(...figures.map((figure) => Math.max(...figure.rounds)))
  const scale = (value: number): number => Math.max(1, (value / most) * (WIDTH - LEFT - RIGHT))
  const title = `<text x="8" y="${top + 12}" font-weight="600">${escape(`${first?.what ?? ''} (${first?.unit ?? ''})`)}</text>`
  const bars = figures.map(({ who, median, rounds }, index) => {
    const y = top + TITLE + index * (BAR + GAP)
    const middle = y + BAR / 2
    const colour = COLOURS[names.indexOf(who) % COLOURS.length]
    const [low, high] = [Math.min(...rounds), Math.max(...rounds)].map((value) => LEFT + scale(value))
    return [
      `<text x="${LEFT - 8}" y="${middle + 4}" text-anchor="end">${escape(who)}</text>`,
      `<rect x="${LEFT}" y="${y}" width="${round(scale(median))}" height="${BAR}" rx="2" fill="${colour}"/>`,
      // The range of the rounds.
      `<path d="M${round(low)} ${middle}H${round(high)}" stroke="${TEXT}" stroke-width="2"/>`,
      `<text x="${round((high ?? 0) + 8)}" y="${middle + 4}">${show(median)}</text>`,
    ].join('')
  })
  return [title, ...bars].join('\n')
}

function round(value: number | undefined): number {
  return Math.round((value ?? 0) * 10) / 10
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}
