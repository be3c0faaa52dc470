import { GrowingBuffer } from '../../../clickhouse/native/growing-buffer.ts'
import type { LowCardinality } from '../../../clickhouse/native/low-cardinality.ts'
import { startOfString } from '../../../clickhouse/native/native-string.ts'
import { FIRST_TYPE } from '../../../clickhouse/tables/packed-attributes.ts'
import { MIB } from '../../../schemas/units.ts'
import { ValueType } from '../protobuf/any-value.ts'
import { BytesCache } from '../protobuf/bytes-cache.ts'
import { cutString } from '../protobuf/cut-text.ts'
import type { PackedAttributes } from '../protobuf/packed-attributes.ts'

/**
 * Attributes that name what a span of a client, producer or consumer talks to, by OpenTelemetry's semantic conventions, each with
 * the name that it had before. The first ones count that are not empty.
 */
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

type Group = keyof typeof KEYS

const GROUPS = Object.keys(KEYS) as Group[]
const SLOTS = GROUPS.flatMap(group => KEYS[group].map(key => ({ group, key })))
const SLOT_OF_KEY = new Map<string, number>(SLOTS.map(({ key }, slot) => [key, slot]))

/** Kinds of spans that talk to something, of client, producer and consumer, are at least this. */
const FIRST_KIND = 3
/** Length to which systems and names are cut, in bytes. */
const TEXT_BYTES = 256
/** Bytes of a value that are looked at. */
const VALUE_BYTES = 512
const CACHE_BYTES = 4 * MIB
const SEPARATOR = 0

/** Where the values are that name the peer, for one list of keys. */
interface Plan {
  /** By position of an attribute: its slot, or -1. */
  readonly slots: readonly number[]
}

/** The list has no such keys. */
const NO_PEER: Plan = { slots: [] }

/** Writes the column `peer` of spans: `database`, `queue` or `request`, the system and the name, in three lines; or empty. */
export class Peers {
  readonly #column: LowCardinality
  readonly #attributes: PackedAttributes
  /** By index of a list of keys. */
  #plans: (Plan | undefined)[] = []
  /** Indexes of peers by the values that name them. */
  readonly #known = new BytesCache<number>(CACHE_BYTES)
  readonly #scratch = new GrowingBuffer()

  constructor(column: LowCardinality, attributes: PackedAttributes) {
    this.#column = column
    this.#attributes = attributes
  }

  /** Appends the peer of a span whose attributes have ended. */
  append(kind: number): void {
    this.#column.fill(kind < FIRST_KIND ? 0 : this.#indexOf(), 1)
  }

  /** Forgets indexes. Must be called whenever a dictionary loses keys. */
  clearCache(): void {
    this.#plans = []
    this.#known.clear()
  }

  #indexOf(): number {
    const { listIndex, recordStart, values, keyLists } = this.#attributes
    if (listIndex === 0) return 0
    this.#plans[listIndex] ??= planOf(keyLists.dictionary.textOf(listIndex))
    const { slots } = this.#plans[listIndex] as Plan
    if (slots.length === 0) return 0
    const scratch = this.#scratch
    scratch.reset()
    const { bytes, length } = values
    let at = startOfString(bytes, recordStart)
    for (let i = 0; i < slots.length; i++) {
      const start = at
      while (at < length && bytes[at] !== SEPARATOR) at++
      const slot = slots[i] as number
      if (slot >= 0 && at > start) {
        scratch.u8(slot)
        scratch.raw(bytes, values.view, start, Math.min(at, start + VALUE_BYTES))
        scratch.u8(SEPARATOR)
      }
      at++
    }
    if (scratch.length === 0) return 0
    const known = this.#known.get(scratch.view, 0, scratch.length)
    if (known !== undefined) return known
    const index = this.#column.indexOf(peerOf(scratch.bytes.subarray(0, scratch.length)))
    this.#known.set(scratch.bytes, scratch.view, 0, scratch.length, index)
    return index
  }
}

/** Reads a list of keys as clickhouse/tables/packed-attributes.ts has it. The last one of equal keys counts. */
function planOf(keyList: string): Plan {
  const [types = '', ...keys] = keyList.slice(0, -1).split('\0')
  const positions = new Map<number, number>()
  for (const [i, key] of keys.entries()) {
    const slot = SLOT_OF_KEY.get(key)
    if (slot === undefined) continue
    // Escaped texts have a further bit, and lists are no names.
    if (types.charCodeAt(i) - FIRST_TYPE === ValueType.string) positions.set(slot, i)
    else positions.delete(slot)
  }
  if (positions.size === 0) return NO_PEER
  const slots = new Array<number>(Math.max(...positions.values()) + 1).fill(-1)
  for (const [slot, position] of positions) slots[position] = slot
  return { slots }
}

/** Returns the text of a peer from the values that name it, each after its slot and before a separator. */
function peerOf(found: Buffer): string {
  const values = new Map<number, string>()
  for (let at = 0; at < found.length; ) {
    const end = found.indexOf(SEPARATOR, at + 1)
    values.set(found[at] as number, found.toString('utf8', at + 1, end))
    at = end + 1
  }
  const first = (group: Group): string => {
    const slot = SLOTS.findIndex((one, i) => one.group === group && values.has(i))
    return values.get(slot) ?? ''
  }
  const address = first('service') || first('host') || hostOf(first('url')) || first('remote')
  const [database, messaging] = [first('database'), first('messaging')]
  if (database !== '') return textOf('database', database, first('namespace') || address)
  if (messaging !== '') return textOf('queue', messaging, first('destination') || address)
  const rpc = first('rpc')
  return rpc === '' && address === '' ? '' : textOf('request', rpc, address)
}

function textOf(kind: string, system: string, name: string): string {
  return [kind, ...[system, name].map(text => cutString(text.replaceAll('\n', ' '), TEXT_BYTES))].join('\n')
}

/** Returns the host of a URL, without its port. Empty if the text is none. */
function hostOf(url: string): string {
  return /^[a-z][a-z0-9+.-]*:\/\/(?:[^/?#@]*@)?(\[[^\]]*\]|[^/?#:]*)/i.exec(url)?.[1] ?? ''
}
