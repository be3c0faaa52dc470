import { BlockList, type IPVersion, isIP } from 'node:net'

/**
 * Addresses that are no receiver, whatever is allowed: an answer of a metadata service is a credential of the machine.
 * 169.254.0.0/16 and fe80::/10 have most of them; those of Azure, Alibaba, AWS and Google are elsewhere.
 */
const NEVER = blockListOf([
  ...['0.0.0.0/8', '169.254.0.0/16', '224.0.0.0/4', '255.255.255.255/32', '168.63.129.16/32', '100.100.100.200/32'],
  ...['::/128', 'fe80::/10', 'ff00::/8', 'fd00:ec2::254/128', 'fd20:ce::254/128'],
])

/** IANA IPv4 Special-Purpose Address Registry, and 240.0.0.0/4. Those of AS112 and AMT can be reached, but are no receivers. */
const SPECIAL_V4 = blockListOf([
  ...['10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '172.16.0.0/12', '192.0.0.0/24', '192.0.2.0/24', '192.31.196.0/24'],
  ...['192.52.193.0/24', '192.88.99.0/24', '192.168.0.0/16', '192.175.48.0/24', '198.18.0.0/15', '198.51.100.0/24'],
  ...['203.0.113.0/24', '240.0.0.0/4'],
])

/** The only addresses of IPv6 that IANA has given out, so that all that it reserves elsewhere is refused already. */
const GLOBAL_V6 = blockListOf(['2000::/3'])
/** IANA IPv6 Special-Purpose Address Registry, inside 2000::/3. 2002::/16 (6to4) and 2001::/32 (Teredo) contain IPv4. */
const SPECIAL_V6 = blockListOf(['2001::/23', '2001:db8::/32', '2002::/16', '2620:4f:8000::/48', '3fff::/20'])

/** Receivers that an operator allows although they are not public. */
export interface AllowedReceivers {
  /** Names, in lower case. */
  readonly hosts: ReadonlySet<string>
  readonly addresses: BlockList
}

/** Allows public receivers only. */
export const PUBLIC_ONLY: AllowedReceivers = { hosts: new Set(), addresses: new BlockList() }

/**
 * Reads a list of addresses, CIDR ranges and host names with commas between them, such as `10.1.0.0/16,hooks.internal`.
 * Returns the first entry that is none of these as `fault`.
 */
export function parseAllowedReceivers(
  text: string,
): { readonly ok: true; readonly allowed: AllowedReceivers } | { readonly ok: false; readonly fault: string } {
  const [hosts, addresses] = [new Set<string>(), new BlockList()]
  for (const entry of text.split(',').map(part => part.trim().toLowerCase())) {
    if (entry === '') continue
    if (addRange(addresses, entry)) continue
    if (!HOST_NAME.test(entry)) return { ok: false, fault: entry }
    hosts.add(entry)
  }
  return { ok: true, allowed: { hosts, addresses } }
}

/** A name whose last label begins with a letter. With a number it would be an IPv4 address in an odd form. */
const HOST_NAME = /^(?:[a-z0-9_](?:[a-z0-9_-]*[a-z0-9])?\.)*[a-z](?:[a-z0-9-]*[a-z0-9])?$/

function blockListOf(ranges: readonly string[]): BlockList {
  const list = new BlockList()
  for (const range of ranges) addRange(list, range)
  return list
}

/** Adds an address or a CIDR range. Returns false, and adds nothing, if it is neither. */
function addRange(list: BlockList, entry: string): boolean {
  const [, address = '', bits] = /^([^/%]+)(?:\/(\d{1,3}))?$/.exec(entry) ?? []
  const version = isIP(address)
  const most = version === 4 ? 32 : 128
  const prefix = Number(bits ?? most)
  if (version === 0 || prefix > most) return false
  list.addSubnet(address, prefix, typeOf(address))
  return true
}

function typeOf(address: string): IPVersion {
  return isIP(address) === 4 ? 'ipv4' : 'ipv6'
}

/** Returns the rule that forbids to connect to an address (of IPv4 or IPv6), or undefined if none does. */
export function addressRefusal(address: string, { addresses }: AllowedReceivers, isHostAllowed: boolean) {
  const plain = withoutTranslation(address)
  // Node would throw for a text with a zone, such as fe80::1%eth0. Only link-local addresses have one.
  if (plain === undefined) return 'its address is not public'
  const type = typeOf(plain)
  if (NEVER.check(plain, type)) return 'its address is link-local, multicast or that of a metadata service'
  if (isHostAllowed || addresses.check(plain, type) || isPublic(plain, type)) return undefined
  return 'its address is not public'
}

/** Whether one of these receivers is allowed by name or address, so that it may be reached without TLS and on any port. */
export function isAllowed(host: string, found: readonly string[], { hosts, addresses }: AllowedReceivers): boolean {
  if (hosts.has(host)) return true
  return found.every(address => {
    const plain = withoutTranslation(address)
    return plain !== undefined && addresses.check(plain, typeOf(plain))
  })
}

function isPublic(address: string, type: IPVersion): boolean {
  if (type === 'ipv4') return !SPECIAL_V4.check(address)
  return GLOBAL_V6.check(address, type) && !SPECIAL_V6.check(address, type)
}

/**
 * Returns the IPv4 address that an IPv6 address represents: `::ffff:a.b.c.d`, or `64:ff9b::a.b.c.d` of NAT64 (RFC 6052), which
 * the name servers of networks without IPv4 give for every receiver. Others are returned as they are, in the form of WHATWG.
 */
function withoutTranslation(address: string): string | undefined {
  if (isIP(address) === 4) return address
  if (isIP(address) === 0 || address.includes('%')) return undefined
  const plain = new URL(`http://[${address}]`).hostname.slice(1, -1)
  const [, high, low] = /^(?:::ffff|64:ff9b:):(?:([0-9a-f]{1,4}):)?([0-9a-f]{1,4})$/.exec(plain) ?? []
  if (low === undefined) return plain
  const [upper, lower] = [Number.parseInt(high ?? '0', 16), Number.parseInt(low, 16)]
  return `${upper >> 8}.${upper & 255}.${lower >> 8}.${lower & 255}`
}
