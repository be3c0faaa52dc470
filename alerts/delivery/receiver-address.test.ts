import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { findReceiver } from './find-receiver.ts'
import { addressRefusal, PUBLIC_ONLY, parseAllowedReceivers } from './receiver-address.ts'

/** The registries of IANA, multicast, and ranges that were withdrawn. */
const SPECIAL_V4 = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.0.0.0/24'],
  ...['192.0.2.0/24', '192.31.196.0/24', '192.52.193.0/24', '192.88.99.0/24', '192.168.0.0/16', '192.175.48.0/24'],
  ...['198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/4', '240.0.0.0/4', '255.255.255.255/32'],
  '168.63.129.16/32',
]
const SPECIAL_V6 = [
  ...['::/128', '::1/128', '::/96', '64:ff9b:1::/48', '100::/64', '100:0:0:1::/64', '2001::/23', '2001:db8::/32'],
  ...['2002::/16', '2620:4f:8000::/48', '3fff::/20', '5f00::/16', 'fc00::/7', 'fe80::/10', 'fec0::/10', 'ff00::/8'],
  'fd00:ec2::254/128',
]

interface Range {
  readonly start: bigint
  readonly hostBits: bigint
}

function valueV4(text: string): bigint {
  return text.split('.').reduce((value, part) => value * 256n + BigInt(part), 0n)
}

function valueV6(text: string): bigint {
  const [head = '', tail = ''] = text.split('::')
  const [left, right] = [head, tail].map(part => part.split(':').filter(group => group !== '')) as [string[], string[]]
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => '0')
  return [...left, ...zeros, ...right].reduce((value, group) => value * 65_536n + BigInt(`0x${group}`), 0n)
}

function rangeOf(cidr: string): Range {
  const [address = '', bits = ''] = cidr.split('/')
  return address.includes(':')
    ? { start: valueV6(address), hostBits: 128n - BigInt(bits) }
    : { start: valueV4(address), hostBits: 32n - BigInt(bits) }
}

const contains = ({ start, hostBits }: Range, value: bigint) => value >> hostBits === start >> hostBits
const within = ({ start, hostBits }: Range) => fc.bigInt(start, start + (1n << hostBits) - 1n)
const bytesOf = (value: bigint) => [24n, 16n, 8n, 0n].map(shift => Number((value >> shift) & 255n))
const groupsOf = (value: bigint) =>
  [112n, 96n, 80n, 64n, 48n, 32n, 16n, 0n].map(shift => ((value >> shift) & 65_535n).toString(16))

/** All forms in which an URL can have an IPv4 address, except those inside IPv6. */
function formsOfV4(value: bigint): string[] {
  const bytes = bytesOf(value)
  const [a = 0, b = 0, c = 0, d = 0] = bytes
  const dotted = bytes.join('.')
  return [
    ...[dotted, `${dotted}.`, `${value}`, `0x${value.toString(16)}`, `0${value.toString(8)}`],
    bytes.map(byte => `0${byte.toString(8)}`).join('.'),
    bytes.map(byte => `0x${byte.toString(16)}`).join('.'),
    ...[`${a}.${(b << 16) | (c << 8) | d}`, `${a}.${b}.${(c << 8) | d}`],
    dotted.replaceAll(/\d/g, digit => String.fromCharCode(0xff10 + Number(digit))),
    dotted.replaceAll('.', '%2e'),
    dotted.replaceAll('.', '。'),
  ]
}

/** Addresses of IPv6 that represent one of IPv4: mapped, NAT64. */
function translated(value: bigint): string[] {
  const dotted = bytesOf(value).join('.')
  const [high, low] = groupsOf(value).slice(-2)
  return [`::ffff:${dotted}`, `::FFFF:${high}:${low}`, `0:0:0:0:0:ffff:${high}:${low}`, `64:ff9b::${dotted}`]
}

const formsOfV6 = (value: bigint) => {
  const groups = groupsOf(value)
  const compressed = new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1)
  return [groups.join(':'), groups.map(group => group.padStart(4, '0').toUpperCase()).join(':'), compressed]
}

const REFUSED = expect.stringMatching(/^the receiver is refused/)
const noLookup = async (host: string) => {
  throw new Error(`${host} was looked up`)
}
const find = (host: string) => findReceiver({ lookup: noLookup, allowed: PUBLIC_ONLY }, `https://${host}/hook`)

describe('addresses of receivers', () => {
  it.each(SPECIAL_V4)('are refused in %s in every form', async cidr => {
    await fc.assert(
      fc.asyncProperty(within(rangeOf(cidr)), async value => {
        const mapped = translated(value)
        const sixToFour = `2002:${groupsOf(value).slice(-2).join(':')}::`
        for (const address of [bytesOf(value).join('.'), ...mapped, sixToFour]) {
          expect(addressRefusal(address, PUBLIC_ONLY, false), address).toBeDefined()
        }
        for (const host of [...formsOfV4(value), ...[...mapped, sixToFour].map(form => `[${form}]`)]) {
          expect(await find(host), host).toMatchObject({ kind: 'refused', reason: REFUSED })
        }
      }),
      { numRuns: 30 },
    )
  })

  it.each(SPECIAL_V6)('are refused in %s in every form', async cidr => {
    await fc.assert(
      fc.asyncProperty(within(rangeOf(cidr)), async value => {
        for (const form of formsOfV6(value)) {
          expect(addressRefusal(form, PUBLIC_ONLY, false), form).toBeDefined()
          expect(await find(`[${form}]`), form).toMatchObject({ kind: 'refused', reason: REFUSED })
        }
      }),
      { numRuns: 60 },
    )
  })

  it('pass if they are public, in every form', async () => {
    const special = SPECIAL_V4.map(rangeOf)
    const isPublic = (value: bigint) => !special.some(range => contains(range, value))
    await fc.assert(
      fc.asyncProperty(fc.bigInt(0n, (1n << 32n) - 1n).filter(isPublic), async value => {
        for (const host of [...formsOfV4(value), ...translated(value).map(form => `[${form}]`)]) {
          expect(await find(host), host).toMatchObject({ addresses: [{}] })
        }
      }),
    )
    const specialV6 = SPECIAL_V6.map(rangeOf)
    const globals = within(rangeOf('2000::/3')).filter(value => !specialV6.some(range => contains(range, value)))
    await fc.assert(
      fc.asyncProperty(globals, async value => {
        for (const form of formsOfV6(value)) expect(await find(`[${form}]`), form).toMatchObject({ addresses: [{}] })
      }),
    )
  })

  it('are refused with a zone', () => {
    expect(addressRefusal('fe80::1%eth0', PUBLIC_ONLY, true)).toBeDefined()
  })
})

describe('a list of allowed receivers', () => {
  it('allows its ranges, addresses and hosts, and nothing beside them', () => {
    const result = parseAllowedReceivers(' 10.1.0.0/16, fd12::/16,192.168.7.7 , Hooks.internal,')
    if (!result.ok) throw new Error(result.fault)
    const refusal = (address: string) => addressRefusal(address, result.allowed, false)
    for (const address of ['10.1.255.255', '::ffff:10.1.0.1', 'fd12::1', '192.168.7.7', '8.8.8.8']) {
      expect(refusal(address), address).toBeUndefined()
    }
    for (const address of ['10.2.0.0', 'fd13::1', '192.168.7.8', '127.0.0.1']) {
      expect(refusal(address), address).toBe('its address is not public')
    }
    expect([...result.allowed.hosts]).toEqual(['hooks.internal'])
  })

  it('never allows link-local addresses and those of metadata services', () => {
    const result = parseAllowedReceivers('0.0.0.0/0,::/0')
    if (!result.ok) throw new Error(result.fault)
    for (const address of ['169.254.169.254', 'fd00:ec2::254', '::ffff:169.254.169.254', '64:ff9b::a9fe:a9fe', '::']) {
      expect(addressRefusal(address, result.allowed, true), address).toMatch(/metadata/)
    }
    expect(addressRefusal('10.0.0.1', result.allowed, false)).toBeUndefined()
  })

  it.each(['10.0.0.0/33', '10.0.0', '300.1.1.1', 'fe80::1%eth0', '*.internal', 'http://host', 'a b', '::1/129', '1e3'])(
    'refuses the entry %s',
    entry => {
      expect(parseAllowedReceivers(`10.0.0.0/8,${entry}`)).toEqual({ ok: false, fault: entry })
    },
  )
})
