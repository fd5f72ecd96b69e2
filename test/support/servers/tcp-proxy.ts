/** A proxy in the test process whose connections can fall silent, break, be refused, and lose one answer. */
import { once } from 'node:events'
import { createServer, Socket, type AddressInfo, type Server } from 'node:net'
import { Signal } from '../signal.ts'

/**
 * pass: bytes go both ways. silent: bytes and closes are accepted from both sides and dropped, and new connections are
 * accepted and never answered; a silent connection stays silent for ever. refuse: new connections are closed at once, and
 * existing ones go on.
 */
export type ProxyMode = 'pass' | 'silent' | 'refuse'

export async function startProxy(targetPort: number): Promise<TcpProxy> {
  const server = createServer({ allowHalfOpen: true, noDelay: true })
  const proxy = new TcpProxy(server, targetPort)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return proxy
}

export class TcpProxy {
  /** Notified when a connection is accepted or has ended. */
  readonly changed = new Signal()
  readonly #server: Server
  readonly #targetPort: number
  readonly #links = new Set<Link>()
  #losses: Loss[] = []
  #accepted = 0
  #mode: ProxyMode = 'pass'

  constructor(server: Server, targetPort: number) {
    this.#server = server
    this.#targetPort = targetPort
    server.on('connection', (client) => this.#accept(client))
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** The target URL, rewritten to go through the proxy. */
  url(target: string): string {
    const through = new URL(target)
    through.port = String(this.port)
    return through.href
  }

  get mode(): ProxyMode {
    return this.#mode
  }

  set mode(mode: ProxyMode) {
    this.#mode = mode
    if (mode === 'silent') for (const link of this.#links) link.silence()
  }

  /** Number of open connections, silent ones included. */
  get connections(): number {
    return this.#links.size
  }

  /** Number of connections ever accepted. */
  get accepted(): number {
    return this.#accepted
  }

  /** Cuts every connection, on both sides. */
  cutAll(): void {
    for (const link of this.#links) link.cut()
  }

  /**
   * Lets the next matching request through to the server, swallows the whole answer, and then cuts the connection. Resolves
   * after that, when the server has executed the request. Rejects if the connection ends before the answer is complete.
   */
  loseNextReply(matches: (chunkFromClient: Buffer) => boolean, isWhole = isReadyForQuery): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#losses.push({ matches, isWhole, resolve, reject })
    })
  }

  /** Cuts every connection and stops listening. Safe to call again. */
  async close(): Promise<void> {
    this.cutAll()
    if (!this.#server.listening) return
    this.#server.close()
    await once(this.#server, 'close')
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #accept(client: Socket): void {
    if (this.#mode === 'refuse') {
      client.destroy()
      return
    }
    this.#accepted++
    // The server never sees a connection that arrives during silence.
    const server = new Socket({ allowHalfOpen: true })
    if (this.#mode === 'pass') server.connect({ port: this.#targetPort, host: '127.0.0.1', noDelay: true })
    const link = new Link(client, server, {
      lossOf: (chunk) => this.#takeLoss(chunk),
      closed: () => {
        this.#links.delete(link)
        this.changed.notify()
      },
    })
    this.#links.add(link)
    if (this.#mode === 'silent') link.silence()
    this.changed.notify()
  }

  #takeLoss(chunk: Buffer): Loss | undefined {
    const loss = this.#losses.find(({ matches }) => matches(chunk))
    this.#losses = this.#losses.filter((other) => other !== loss)
    return loss
  }
}

interface Loss {
  readonly matches: (chunk: Buffer) => boolean
  readonly isWhole: (answer: Buffer) => boolean
  readonly resolve: () => void
  readonly reject: (error: Error) => void
}

interface LinkOwner {
  lossOf(chunk: Buffer): Loss | undefined
  closed(): void
}

/** A client's connection, paired with one to the server. */
class Link {
  readonly #client: Socket
  readonly #server: Socket
  readonly #owner: LinkOwner
  #isSilent = false
  #loss: Loss | undefined
  #lost: Buffer[] = []

  constructor(client: Socket, server: Socket, owner: LinkOwner) {
    this.#client = client
    this.#server = server
    this.#owner = owner
    client.on('data', (chunk: Buffer) => this.#fromClient(chunk))
    server.on('data', (chunk: Buffer) => this.#fromServer(chunk))
    this.#join(client, server)
    this.#join(server, client)
  }

  silence(): void {
    this.#isSilent = true
    // A paused socket would not even accept bytes.
    this.#client.resume()
    this.#server.resume()
  }

  cut(): void {
    this.#client.destroy()
    this.#server.destroy()
    this.#over()
  }

  #fromClient(chunk: Buffer): void {
    if (this.#isSilent) return
    this.#loss ??= this.#owner.lossOf(chunk)
    this.#forward(chunk, this.#client, this.#server)
  }

  #fromServer(chunk: Buffer): void {
    if (this.#isSilent) return
    if (this.#loss === undefined) {
      this.#forward(chunk, this.#server, this.#client)
      return
    }
    this.#lost.push(chunk)
    if (!this.#loss.isWhole(Buffer.concat(this.#lost))) return
    this.#loss.resolve()
    this.cut()
  }

  #forward(chunk: Buffer, from: Socket, to: Socket): void {
    if (to.write(chunk)) return
    from.pause()
    to.once('drain', () => from.resume())
  }

  /** Passes the end of one side on to the other. */
  #join(from: Socket, to: Socket): void {
    from.on('error', () => undefined)
    from.on('end', () => {
      if (!this.#isSilent) to.end()
    })
    from.on('close', (hadError) => {
      if (to.destroyed) this.#over()
      else if (this.#isSilent) return
      else if (hadError) to.destroy()
      // Bytes in flight to the other side still arrive.
      else to.destroySoon()
    })
  }

  #over(): void {
    this.#loss?.reject(new Error('The connection ended before the answer was whole.'))
    this.#owner.closed()
  }
}

/**
 * Whether PostgreSQL's answer has come to ReadyForQuery: only then is the statement's work done and committed. An
 * answer starts at a message, since `pg` asks nothing before it was answered; each is a letter and a length.
 */
function isReadyForQuery(answer: Buffer): boolean {
  for (let at = 0; at + 5 <= answer.length; at += 1 + answer.readUInt32BE(at + 1)) {
    if (answer[at] === 0x5a) return true
  }
  return false
}
