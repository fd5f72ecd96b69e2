import { expect, test } from 'vitest'
import { alone, coreOf } from '../../test/support/virtual.ts'
import { LazyAbort } from '../std/abort.ts'
import { BatchGroup } from './batch-group.ts'
import type { Batched, BatchMember } from './batch-call.ts'

const broken = new Error('a bug')

function batched(): Batched {
  const part = {
    worker: 'worker',
    abort: new LazyAbort(),
    abortedFor: undefined,
    inherited: { correlationId: '1', metadata: {} },
    unhandled: () => undefined,
    batchCall: undefined,
  }
  // What an instrument would read.
  return part as Omit<Batched, 'facts' | 'waitMs' | 'end'> as Batched
}

test.each(['after the call', 'at the end of a member'])(
  'every member of a batch ends, although something goes wrong %s',
  async (when) => {
    const { hf, world, told } = alone()
    const core = coreOf(hf)
    const onReturned = (): void => {
      if (when === 'after the call') throw broken
    }
    const group = new BatchGroup({ core, size: 3, run: () => ['a', 'b', 'c'], onReturned })
    const ended: unknown[] = []
    for (let n = 0; n < 3; n++) {
      const member = group.join(batched(), { input: n } as unknown as BatchMember['context'])
      member.listen(
        (result) => {
          ended.push(result)
          if (when === 'at the end of a member' && n === 0) throw broken
        },
        (error) => ended.push(error),
      )
    }
    await world.advance(1)
    expect(ended).toEqual(['a', 'b', 'c'])
    expect(told.of('worker.error')).toMatchObject([{ worker: 'worker', doing: 'end a batch', error: broken }])
  },
)
