/** The heartbeat thread's own client, on a real Redis. */
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer as createTlsServer } from 'node:tls'
import { Redis } from 'ioredis'
import { describe, expect, test } from 'vitest'
import { redisMissing } from '../../../../test/support/servers/redis.ts'
import { startRedis, type RedisServer } from '../../../../test/support/servers/redis-server.ts'
import { startProxy } from '../../../../test/support/servers/tcp-proxy.ts'
import { systemClock } from '../../../std/clock.ts'
import { systemRandom } from '../../../std/random.ts'
import type { ClientOptions } from '../driver.ts'
import { readScripts } from '../scripts.ts'
import { oneShard } from '../shards.ts'
import { RedisPulseLink } from './pulse-link.ts'
import { RespClient } from './resp-client.ts'
import { respTarget } from './resp-target.ts'

/** For 'localhost', valid for a hundred years; it protects nothing. */
const KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg1IQMEBSafLBYnPqT
bC9FYPJEEZwoph1fxvICshK71tmhRANCAASJqQbZuhRw91jBZhA+OZ616vaLLZpD
evhxHGiCly58ngm64QrObn9XvBkptGTESBInUBUhf6B6jHHC5y1a9pTx
-----END PRIVATE KEY-----`
const CERT = `-----BEGIN CERTIFICATE-----
MIIBlTCCATugAwIBAgIUMh3VjE+NjbKglbXe52I7GAaSeXswCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTExOTA2NDkzNVoYDzIxMjYxMDI2
MDY0OTM1WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAASJqQbZuhRw91jBZhA+OZ616vaLLZpDevhxHGiCly58ngm64QrObn9X
vBkptGTESBInUBUhf6B6jHHC5y1a9pTxo2kwZzAdBgNVHQ4EFgQU+l5fFEwwKMW4
XYSUdkkHN6xr3zYwHwYDVR0jBBgwFoAU+l5fFEwwKMW4XYSUdkkHN6xr3zYwDwYD
VR0TAQH/BAUwAwEB/zAUBgNVHREEDTALgglsb2NhbGhvc3QwCgYIKoZIzj0EAwID
SAAwRQIhAPRmSVee9VbEgv4GECapQ59C5BoFFBwgx367ytzxWgOwAiB5LCIQBAQn
V4bJFlCVEI6sQ6NqUNgwCf9Mc2J9+N/2mQ==
-----END CERTIFICATE-----`

function clientOf(url: string | null, connection: ClientOptions = {}): RespClient {
  return new RespClient(respTarget(url, { connectionName: 'holdfast-pulse', ...connection })!)
}

/** Passes on what arrives. */
function to({ port }: RedisServer): (socket: Socket) => void {
  return (socket) => {
    const behind = connect(port, '127.0.0.1')
    socket.on('error', () => behind.destroy())
    socket.pipe(behind).pipe(socket)
  }
}

describe.skipIf(redisMissing() !== '')("the heartbeat thread's connection to Redis", () => {
  test('sends commands, answers them in order, and says goodbye', async () => {
    await using server = await startRedis()
    const client = clientOf(server.url)
    expect(client.status).toBe('wait')
    await client.connect()
    expect(client.status).toBe('ready')
    const answers = [client.call('SET', ['key', 'ü 1']), client.call('GET', ['key']), client.ping()]
    expect(await Promise.all(answers)).toEqual(['OK', 'ü 1', 'PONG'])
    expect(await client.call('CLIENT', ['GETNAME'])).toBe('holdfast-pulse')
    expect(await client.call('EVAL', ['return {1, {redis.status_reply("a"), false}}', 0])).toEqual([
      1,
      ['a', null],
    ])
    const refused = client.call('NOTHING', [])
    await expect(refused).rejects.toMatchObject({
      name: 'ReplyError',
      message: expect.stringMatching(/^ERR/),
    })
    const ended = once(client, 'end')
    expect(await client.quit()).toBe('OK')
    await ended
    await expect(client.ping()).rejects.toThrow('Connection is closed.')
  })

  test('gives a password, or a user and a password', async () => {
    await using server = await startRedis({ settings: { requirepass: 'sesame' } })
    const admin = new Redis(server.url, { password: 'sesame' })
    await admin.call('ACL', 'SETUSER', 'worker', 'on', '>open', '~*', '+@all')
    admin.disconnect()
    const at = server.url.slice('redis://'.length)
    for (const [login, who] of [
      [':sesame', 'default'],
      ['worker:open', 'worker'],
    ]) {
      const client = clientOf(`redis://${login}@${at}`)
      await client.connect()
      expect(await client.call('ACL', ['WHOAMI'])).toBe(who)
      expect(await client.call('CLIENT', ['GETNAME'])).toBe('holdfast-pulse')
      client.disconnect()
    }
    const refused = clientOf(`redis://:wrong@${at}`).connect()
    await expect(refused).rejects.toMatchObject({
      name: 'ReplyError',
      message: expect.stringContaining('WRONGPASS'),
    })
  })

  test('does not mind a password that the server does not ask for', async () => {
    await using server = await startRedis()
    const client = clientOf(server.url, { password: 'sesame' })
    await client.connect()
    expect(await client.ping()).toBe('PONG')
    client.disconnect()
  })

  test('goes over a unix socket', async () => {
    await using server = await startRedis()
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-socket-'))
    const path = join(folder, 'redis.sock')
    const front = createServer(to(server)).listen(path)
    await once(front, 'listening')
    const client = clientOf(null, { path })
    await client.connect()
    expect(await client.ping()).toBe('PONG')
    client.disconnect()
    front.close()
    await rm(folder, { recursive: true })
  })

  test('goes over TLS, and trusts nobody unknown', async () => {
    await using server = await startRedis()
    const front = createTlsServer({ key: KEY, cert: CERT }, to(server))
    front.listen(0)
    await once(front, 'listening')
    const url = `rediss://localhost:${(front.address() as AddressInfo).port}`
    const client = clientOf(url, { tls: { ca: CERT } })
    await client.connect()
    expect(await client.ping()).toBe('PONG')
    client.disconnect()
    await expect(clientOf(url).connect()).rejects.toMatchObject({ code: 'DEPTH_ZERO_SELF_SIGNED_CERT' })
    front.close()
  })

  test('fails what waits when it is lost', async () => {
    await using server = await startRedis()
    await using proxy = await startProxy(server.port)
    const client = clientOf(proxy.url(server.url))
    await client.connect()
    proxy.mode = 'silent'
    const waits = client.ping()
    proxy.cutAll()
    await expect(waits).rejects.toThrow()
    expect(client.status).toBe('end')
  })

  test('cannot be made to nobody, nor to something that is no Redis', async () => {
    await expect(clientOf('redis://127.0.0.1:1').connect()).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    const other = createServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))
    other.listen(0)
    await once(other, 'listening')
    const { port } = other.address() as AddressInfo
    await expect(clientOf(`redis://:secret@127.0.0.1:${port}`).connect()).rejects.toThrow('not a reply')
    other.close()
  })

  test('selects its database', async () => {
    await using server = await startRedis()
    const pulse = { url: server.url, connection: {}, db: 3, renew: readScripts().get('renew') }
    const link = new RedisPulseLink(
      { ...pulse, control: oneShard('other').control },
      systemClock,
      systemRandom,
    )
    // Nobody has registered there.
    expect(await link.renew('nobody', 30_000)).toBe(false)
    const admin = new Redis(server.url)
    const thread = String(await admin.client('LIST'))
      .split('\n')
      .find((line) => line.includes('name=holdfast-pulse'))
    expect(thread).toContain(' db=3 ')
    admin.disconnect()
    await link.close()
  })
})
