/** Every figure of every contender, round by round. */
import { median } from '../report.ts'
import { FIGURES, type Figure, type Figures } from './figures.ts'
import type { Contender, Peer } from './settings.ts'

export interface MeasuredRow {
  readonly figure: Figure
  readonly what: string
  readonly unit: string
  readonly who: Contender
  readonly median: number
  readonly rounds: readonly number[]
}

export class Measured {
  readonly peers: readonly Peer[]
  readonly #values = new Map<string, number[]>()

  constructor(peers: readonly Peer[]) {
    this.peers = peers
  }

  /** Rounds count from 0. */
  add(round: number, who: Contender, figures: Figures): void {
    for (const [figure, value] of Object.entries(figures)) {
      const key = `${figure} ${who}`
      const values = this.#values.get(key) ?? []
      values[round] = value
      this.#values.set(key, values)
    }
  }

  /** By round, with holes where a run failed; empty where it was not measured. */
  get(figure: Figure, who: Contender): readonly number[] {
    return this.#values.get(`${figure} ${who}`) ?? []
  }

  rows(): MeasuredRow[] {
    const contenders: readonly Contender[] = ['holdfast', ...this.peers]
    return (Object.keys(FIGURES) as Figure[]).flatMap((figure) =>
      contenders.flatMap((who) => {
        const rounds = this.get(figure, who).filter(Number.isFinite)
        return rounds.length === 0
          ? []
          : [{ figure, ...FIGURES[figure], who, median: median(rounds), rounds }]
      }),
    )
  }
}
