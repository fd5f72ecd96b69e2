/** Not a promise of Holdfast: what the rules rely on, so that a mistake of the recorder is not taken for one of the store. */
import type { HistoryEvent } from '../history.ts'
import type { Rule } from '../rule.ts'
import type { World } from '../world.ts'

export function wellFormed(world: World): Rule {
  let seq = -1
  let t = -Infinity
  let began = false

  function on(event: HistoryEvent): void {
    if (event.seq <= seq) bad(`seq ${event.seq} comes after ${seq}`, event)
    if (event.t < t) bad(`the clock goes back from ${t} to ${event.t}`, event)
    if (!began && event.type !== 'begin') bad('the first event is not `begin`', event)
    began = true
    seq = event.seq
    t = event.t
    if (event.type === 'invoke' && world.calls.open.has(event.op)) bad(`op ${event.op} is used twice`, event)
    if (event.type === 'answer') answered(event)
    if (event.type === 'move' && !world.moves)
      bad('there are moves although `begin` says there are none', event)
  }

  function answered(event: Extract<HistoryEvent, { type: 'answer' }>): void {
    const { invoked } = world
    if (invoked === undefined) return bad(`op ${event.op} is answered but not under way`, event)
    const { call } = invoked
    const { reply } = event
    if (call.kind !== reply.kind)
      return bad(`op ${event.op} is a ${call.kind}, its answer a ${reply.kind}`, event)
    const lengths =
      call.kind === 'enqueue' && reply.kind === 'enqueue'
        ? [call.jobs.length, reply.jobs.length]
        : call.kind === 'cycle' && reply.kind === 'cycle'
          ? [call.settles.length, reply.settled.length]
          : [0, 0]
    if (lengths[0] !== lengths[1])
      bad(`op ${event.op} asks for ${lengths[0]}, is answered for ${lengths[1]}`, event)
  }

  function bad(text: string, event: HistoryEvent): void {
    world.report('history', null, text, [event])
  }

  return {
    name: 'history',
    // All of them.
    sees: [
      'begin',
      'invoke',
      'answer',
      'failed',
      'unknown',
      'move',
      'setting',
      'lease',
      'run',
      'stop',
      'node',
      'store',
      'fault',
      'phase',
      'snapshot',
    ],
    on,
    end() {},
  }
}
