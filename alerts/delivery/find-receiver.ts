import type { LookupAddress } from 'node:dns'
import { isIP } from 'node:net'
import { type AllowedReceivers, addressRefusal, isAllowed } from './receiver-address.ts'

/** Dependencies of {@link findReceiver}. */
export interface ReceiverDeps {
  /** Returns all addresses of a host, or throws an error with a code of DNS. It is called once for each delivery. */
  readonly lookup: (host: string) => Promise<readonly LookupAddress[]>
  readonly allowed: AllowedReceivers
}

/** A receiver that may be reached, and the only addresses at which it may be. */
export interface Receiver {
  readonly url: URL
  readonly addresses: readonly LookupAddress[]
}

/** Why a receiver is not reached: `refused` by a rule, or `failed` because its name has no address now. */
interface Unreached {
  readonly kind: 'refused' | 'failed'
  readonly reason: string
}

const URL_CHARACTERS_MAX = 2_048
/** Ports below are those of services such as SSH, SMTP and IMAP, which must not receive a request from here. */
const UNPRIVILEGED_PORT = 1_024

/**
 * Checks the URL of a receiver and every address of its host. A connection to one of these addresses, without another look at
 * the name, cannot be diverted by a name server that changes its answer (DNS rebinding). Never throws for what a client wrote.
 */
export async function findReceiver(deps: ReceiverDeps, text: string): Promise<Receiver | Unreached> {
  const url = text.length <= URL_CHARACTERS_MAX && URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined) return refused('the URL is invalid')
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return refused('the URL must begin with https://')
  if (url.username !== '' || url.password !== '') return refused('the URL must have no user and no password')
  const addresses = await addressesOf(deps, url)
  if (!Array.isArray(addresses)) return addresses
  const host = url.hostname
  const found = addresses.map(({ address }) => address)
  const isHostAllowed = deps.allowed.hosts.has(host)
  for (const address of found) {
    const rule = addressRefusal(address, deps.allowed, isHostAllowed)
    if (rule !== undefined) return refused(`the receiver is refused: ${rule}`)
  }
  if (!isAllowed(host, found, deps.allowed)) {
    if (url.protocol !== 'https:') return refused('the URL must begin with https://')
    if (url.port !== '' && Number(url.port) < UNPRIVILEGED_PORT)
      return refused(`the port must be 443, or ${UNPRIVILEGED_PORT} or above`)
  }
  return { url, addresses }
}

const refused = (reason: string): Unreached => ({ kind: 'refused', reason })

/** The URL parser has written addresses in decimal, octal, hex or full-width digits as `a.b.c.d` already. */
async function addressesOf({ lookup }: ReceiverDeps, url: URL): Promise<LookupAddress[] | Unreached> {
  const literal = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const family = isIP(literal)
  if (family !== 0) return [{ address: literal, family }]
  try {
    const found = await lookup(url.hostname)
    return found.length > 0 ? [...found] : { kind: 'failed', reason: NO_ADDRESS }
  } catch (error) {
    const isUnknown = error instanceof Error && 'code' in error && ['ENOTFOUND', 'ENODATA'].includes(`${error.code}`)
    return { kind: 'failed', reason: isUnknown ? NO_ADDRESS : 'the name of the receiver could not be looked up' }
  }
}

const NO_ADDRESS = 'the name of the receiver has no address'
