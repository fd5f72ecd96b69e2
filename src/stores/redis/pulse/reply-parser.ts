/** Replies of Redis under version 2 of its protocol, as they arrive in pieces. */

/** What the server refuses. The name is that of ioredis's class, by which `server-errors.ts` knows it. */
export class ReplyError extends Error {
  override name = 'ReplyError'
}

/** A part of a reply, and where the next one begins. */
interface Read {
  readonly value: unknown
  readonly end: number
}

const CR_LF = '\r\n'

export class ReplyParser {
  #unread: Buffer = Buffer.alloc(0)

  /** The replies that are complete by now. Throws if the bytes do not come from a Redis. */
  push(chunk: Buffer): unknown[] {
    const bytes = this.#unread.length === 0 ? chunk : Buffer.concat([this.#unread, chunk])
    const replies: unknown[] = []
    let at = 0
    for (let read = readReply(bytes, at); read !== null; read = readReply(bytes, at)) {
      replies.push(read.value)
      at = read.end
    }
    this.#unread = bytes.subarray(at)
    return replies
  }
}

/** Null if its end is not there yet. */
function readReply(bytes: Buffer, at: number): Read | null {
  const lineEnd = bytes.indexOf(CR_LF, at)
  if (lineEnd === -1) return null
  const line = bytes.toString('utf8', at + 1, lineEnd)
  const end = lineEnd + CR_LF.length
  switch (bytes[at]) {
    case 0x2b: // +
      return { value: line, end }
    case 0x2d: // -
      return { value: new ReplyError(line), end }
    case 0x3a: // :
      return { value: readNumber(line), end }
    case 0x24: // $
      return readText(bytes, readNumber(line), end)
    case 0x2a: // *
      return readList(bytes, readNumber(line), end)
    default:
      throw new Error(`Redis sent something that is not a reply: ${JSON.stringify(line.slice(0, 40))}`)
  }
}

function readNumber(line: string): number {
  if (/^-?\d+$/.test(line)) return Number(line)
  throw new Error(`Redis sent something that is not a number: ${JSON.stringify(line.slice(0, 40))}`)
}

function readText(bytes: Buffer, size: number, at: number): Read | null {
  if (size < 0) return { value: null, end: at }
  const end = at + size + CR_LF.length
  return bytes.length < end ? null : { value: bytes.toString('utf8', at, at + size), end }
}

function readList(bytes: Buffer, size: number, at: number): Read | null {
  if (size < 0) return { value: null, end: at }
  const value: unknown[] = []
  let end = at
  while (value.length < size) {
    const read = readReply(bytes, end)
    if (read === null) return null
    value.push(read.value)
    end = read.end
  }
  return { value, end }
}
