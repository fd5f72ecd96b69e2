/** Every figure of every contender, round by round. */
import { median } from '../report.ts'
import { entriesOf, type FigureKind, type FigureKinds, type Figures } from './figures.ts'
import type { Contender } from './protocol.ts'

export interface MeasuredRow extends FigureKind {
  readonly figure: string
  readonly who: Contender
  readonly median: number
  readonly rounds: readonly number[]
}

export class Measured<Figure extends string, Peer extends string> {
  readonly kinds: FigureKinds<Figure>
  readonly peers: readonly Peer[]
  /** All who run, in the order of the tables. */
  readonly contenders: readonly Contender<Peer>[]
  readonly #values = new Map<string, number[]>()

  constructor(kinds: FigureKinds<Figure>, ours: readonly Contender<never>[], peers: readonly Peer[]) {
    this.kinds = kinds
    this.peers = peers
    this.contenders = [...ours, ...peers]
  }

  /** Rounds count from 0. */
  add(round: number, who: Contender<Peer>, figures: Figures<Figure>): void {
    for (const [figure, value] of entriesOf(figures)) {
      const key = `${figure} ${who}`
      const values = this.#values.get(key) ?? []
      values[round] = value
      this.#values.set(key, values)
    }
  }

  /** By round, with holes where a run failed; empty where it was not measured. */
  get(figure: Figure, who: Contender<Peer>): readonly number[] {
    return this.#values.get(`${figure} ${who}`) ?? []
  }

  rows(): MeasuredRow[] {
    return (Object.keys(this.kinds) as Figure[]).flatMap((figure) =>
      this.contenders.flatMap((who) => {
        const rounds = this.get(figure, who).filter(Number.isFinite)
        return rounds.length === 0
          ? []
          : [{ figure, ...this.kinds[figure], who, median: median(rounds), rounds }]
      }),
    )
  }
}
