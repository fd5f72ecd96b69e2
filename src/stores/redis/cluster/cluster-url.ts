/** `redis-cluster://user:password@host:port?node=host:port&node=…` */
import type { ClientOptions } from '../driver.ts'

export interface NodeAddress {
  readonly host: string
  readonly port: number
}

export interface ClusterUrl {
  /** Null if one of them is not an address. */
  readonly seeds: readonly NodeAddress[] | null
  readonly options: ClientOptions
}

const DEFAULT_PORT = 6379

export function readClusterUrl(text: string): ClusterUrl {
  const url = new URL(text)
  const nodes = [url.host, ...url.searchParams.getAll('node')].map(addressOf)
  return {
    seeds: nodes.every((node) => node !== null) ? nodes : null,
    options: {
      ...(url.username === '' ? {} : { username: decodeURIComponent(url.username) }),
      ...(url.password === '' ? {} : { password: decodeURIComponent(url.password) }),
      ...(url.protocol === 'rediss-cluster:' ? { tls: {} } : {}),
    },
  }
}

/** `host`, `host:port` or `[::1]:port`. */
function addressOf(text: string): NodeAddress | null {
  if (!URL.canParse(`redis://${text}`)) return null
  const { hostname, port, pathname } = new URL(`redis://${text}`)
  if (hostname === '' || pathname !== '') return null
  return { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: port === '' ? DEFAULT_PORT : Number(port) }
}
