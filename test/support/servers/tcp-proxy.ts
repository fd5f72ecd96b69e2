/** A line to a server that can fall silent, break, refuse, and lose one answer, in the process of the test. */
import { once } from 'node:events'
import { createServer, Socket, type AddressInfo, type Server } from 'node:net'

/**
 * pass: bytes go both ways. silent: what is sent is taken and goes nowhere, in either direction, closes included, and
 * new connections are accepted and never answered; a connection that fell silent never speaks again. refuse: new
 * connections are closed at once, those that exist go on.
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

  /** The same, but through the proxy. */
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

  /** How many are open, silent ones included. */
  get connections(): number {
    return this.#links.size
  }

  /** How many have ever been let in. */
  get accepted(): number {
    return this.#accepted
  }

  /** Breaks every connection, for both sides. */
  cutAll(): void {
    for (const link of this.#links) link.cut()
  }

  /**
   * The next bytes of a client that match reach the server, whose answer is swallowed to its end; then the connection
   * breaks, and the promise resolves: by now the server has done what it was asked. Rejects if the connection ends
   * before the answer was whole.
   */
  loseNextReply(matches: (chunkFromClient: Buffer) => boolean, isWhole = isReadyForQuery): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#losses.push({ matches, isWhole, resolve, reject })
    })
  }

  /** Breaks every connection and listens no more. Safe to call again. */
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
    // The server hears nothing of one who comes while it is silent.
    const server = new Socket({ allowHalfOpen: true })
    if (this.#mode === 'pass') server.connect({ port: this.#targetPort, host: '127.0.0.1', noDelay: true })
    const link = new Link(client, server, {
      lossOf: (chunk) => this.#takeLoss(chunk),
      closed: () => this.#links.delete(link),
    })
    this.#links.add(link)
    if (this.#mode === 'silent') link.silence()
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

/** One client's connection, and ours to the server on its behalf. */
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
    // One that waits for its peer to read on would not even take bytes.
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

  /** How the end of one side becomes that of the other. */
  #join(from: Socket, to: Socket): void {
    from.on('error', () => undefined)
    from.on('end', () => {
      if (!this.#isSilent) to.end()
    })
    from.on('close', (hadError) => {
      if (to.destroyed) this.#over()
      else if (this.#isSilent) return
      else if (hadError) to.destroy()
      // What is under way to the other side still arrives.
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
