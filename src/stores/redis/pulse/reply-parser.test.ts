import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ReplyError, ReplyParser } from './reply-parser.ts'

type Reply = string | number | null | ReplyError | readonly Reply[]

function encode(reply: Reply): string {
  if (reply === null) return '$-1\r\n'
  if (typeof reply === 'number') return `:${reply}\r\n`
  if (typeof reply === 'string') return `$${Buffer.byteLength(reply)}\r\n${reply}\r\n`
  if (reply instanceof ReplyError) return `-${reply.message}\r\n`
  return `*${reply.length}\r\n${reply.map(encode).join('')}`
}

const { reply } = fc.letrec<{ reply: Reply }>((tie) => ({
  reply: fc.oneof(
    { maxDepth: 3 },
    fc.string({ unit: 'binary' }),
    fc.integer(),
    fc.constant(null),
    fc.constantFrom(new ReplyError('ERR no'), new ReplyError('NOSCRIPT none')),
    fc.array(tie('reply'), { maxLength: 4 }),
  ),
}))

describe('replies of Redis', () => {
  test('are read alike, however their bytes are cut', () => {
    fc.assert(
      fc.property(fc.array(reply, { maxLength: 5 }), fc.integer({ min: 1, max: 20 }), (replies, size) => {
        const bytes = Buffer.from(replies.map(encode).join(''))
        const parser = new ReplyParser()
        const read: unknown[] = []
        for (let at = 0; at < bytes.length; at += size)
          read.push(...parser.push(bytes.subarray(at, at + size)))
        expect(read).toEqual(replies)
      }),
    )
  })

  test('can be a status and a list that is none', () => {
    expect(new ReplyParser().push(Buffer.from('+OK\r\n*-1\r\n*0\r\n'))).toEqual(['OK', null, []])
  })

  test.for(['HTTP/1.1 400 Bad Request\r\n', ':one\r\n', '$x\r\n'])('are not %j', (text) => {
    expect(() => new ReplyParser().push(Buffer.from(text))).toThrow('Redis sent something')
  })
})
