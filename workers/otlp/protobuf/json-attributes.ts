import type { LowCardinality } from '../../../clickhouse/native/low-cardinality.ts'
import { type KeyValue, placeText, promotedText, readKeyValue, writeJsonPair } from './any-value.ts'
import { type AttributeTexts, PLACE_ATTRIBUTES, PLACE_TEXT_BYTES } from './place-attributes.ts'
import type { WireCursor } from './wire.ts'

/** An attribute: the positions of key and value, and the cursor over the key. */
interface Attribute extends KeyValue {
  readonly wire: WireCursor
}

/**
 * The attributes of a Resource, an InstrumentationScope or a Metric as one JSON object. They are written from the payload
 * to the column, without a copy in between, because a single value may have tens of megabytes.
 */
export class JsonAttributes {
  /** The last value of a repeated key counts, because JSON readers treat repeated keys differently. */
  readonly #byKey = new Map<string, Attribute>()
  /** Values of repeated keys that do not count. Like all others they must be well-formed. */
  readonly #replaced: Attribute[] = []

  /** Adds the KeyValue message `[start, end)`. */
  add(wire: WireCursor, start: number, end: number): void {
    const pair = readKeyValue(wire, start, end)
    const key = wire.bytes.toString('utf8', pair.keyStart, pair.keyEnd)
    const replaced = this.#byKey.get(key)
    if (replaced !== undefined) this.#replaced.push(replaced)
    this.#byKey.set(key, { ...pair, wire })
  }

  /** Returns the index of the object in a column. It is the same for attributes in any order: keys are sorted by code unit. */
  indexIn({ dictionary }: LowCardinality): number {
    const out = dictionary.keys
    for (const attribute of this.#replaced) {
      const end = out.length
      writeJsonPair(out, attribute.wire, attribute, 0)
      out.truncate(end)
    }
    dictionary.beginKey()
    out.u8(0x7b)
    let separate = false
    for (const key of [...this.#byKey.keys()].sort()) {
      const attribute = this.#byKey.get(key) as Attribute
      if (separate) out.u8(0x2c)
      separate = true
      writeJsonPair(out, attribute.wire, attribute, 0)
    }
    out.u8(0x7d)
    return dictionary.endKey()
  }

  /** Returns the text of an attribute for a promoted column, cut to `limitBytes`. */
  text(key: string, limitBytes: number): string {
    const attribute = this.#byKey.get(key)
    if (attribute === undefined) return ''
    return promotedText(attribute.value, attribute.valueStart, attribute.valueEnd, limitBytes)
  }

  /** Returns the texts of the attributes that state a place. */
  placeTexts(): AttributeTexts {
    const texts = new Map<string, string>()
    for (const [key, { value, valueStart, valueEnd }] of this.#byKey) {
      if (PLACE_ATTRIBUTES.has(key)) texts.set(key, placeText(value, valueStart, valueEnd, PLACE_TEXT_BYTES))
    }
    return texts
  }
}
