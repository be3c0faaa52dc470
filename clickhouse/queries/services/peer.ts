import { attributeOf, storedKey } from '../attributes/packed-attributes.ts'

/** Expressions about what the span of a client, producer or consumer talks to, by OpenTelemetry's semantic conventions. */
export interface PeerExpressions {
  /** `database`, `queue`, or `request` for all others. */
  readonly kind: string
  /** `postgresql`, `kafka`, `aws-api`: empty for most requests. */
  readonly system: string
  /** The database, the destination of the messages, the called service or host. May be empty. */
  readonly name: string
  /** The keys that the expressions bind. */
  readonly params: Readonly<Record<string, string>>
}

/** Keys of each text in the order of preference, the stable convention before the one that it replaced. */
const KEYS = {
  database: ['db.system.name', 'db.system'],
  messaging: ['messaging.system'],
  rpc: ['rpc.system.name', 'rpc.system'],
  namespace: ['db.namespace', 'db.name'],
  destination: ['messaging.destination.name', 'messaging.destination'],
  service: ['service.peer.name', 'peer.service'],
  host: ['server.address', 'net.peer.name', 'http.host'],
  url: ['url.full', 'http.url'],
  remote: ['rpc.service'],
} as const

/** Length to which names are cut, in characters. */
const NAME_CHARACTERS = 128

/** Expressions of a row of `spans`. */
export const PEER = peerExpressions()

function peerExpressions(): PeerExpressions {
  const params: Record<string, string> = {}
  const textOf = (key: string) => {
    const name = `key${Object.keys(params).length}`
    params[name] = storedKey(key)
    const { exists, value } = attributeOf(`{${name}: String}`)
    return `if(${exists}, ${value}, '')`
  }
  const first = (texts: readonly string[]) =>
    texts.reduceRight((rest, text) => (rest === "''" ? text : `if(${text} != '', ${text}, ${rest})`), "''")
  const ofKeys = Object.fromEntries(
    Object.entries(KEYS).map(([name, keys]) => [name, first(keys.map(textOf))]),
  ) as Record<keyof typeof KEYS, string>
  const { database, messaging, rpc, namespace, destination, service, host, url, remote } = ofKeys
  const address = first([service, host, `domain(${url})`, remote])
  const cut = (text: string) => `substringUTF8(${text}, 1, ${NAME_CHARACTERS})`
  return {
    kind: `multiIf(${database} != '', 'database', ${messaging} != '', 'queue', 'request')`,
    system: cut(first([database, messaging, rpc])),
    name: cut(
      `multiIf(${database} != '', ${first([namespace, address])}, ${messaging} != '', ${first([destination, address])}, ${address})`,
    ),
    params,
  }
}
