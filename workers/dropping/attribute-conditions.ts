import { DROP_CHARACTERS } from '../../schemas/records/dropping.ts'
import { readKeyValue, scalarText } from '../otlp/protobuf/any-value.ts'
import type { WireCursor } from '../otlp/protobuf/wire.ts'

/** No value of a rule is longer. */
const VALUE_BYTES = 4 * DROP_CHARACTERS + 4
/** Tags of KeyValue, and of a text in AnyValue. */
const KEY_TAG = 0x0a
const VALUE_TAG = 0x12
const TEXT_TAG = 0x0a
/** Number of sums of keys. */
const KEY_SUMS = 1_024

/** An attribute that a rule demands: a key, and the value if it has one. */
interface DemandedAttribute {
  readonly key: string
  readonly value?: string | undefined
}

/** An attribute that a rule demands, and whether the current resource and record have it. */
export class AttributeCondition {
  readonly key: Uint8Array
  readonly #value: string | undefined
  readonly #valueBytes: Uint8Array
  onResource = false
  onRecord = false

  constructor({ key, value }: DemandedAttribute) {
    this.key = Buffer.from(key)
    this.#value = value
    this.#valueBytes = Buffer.from(value ?? '')
  }

  /** Returns whether the AnyValue `[start, end)` is the value. Any is if the rule demands only the key. */
  hasValue(wire: WireCursor, start: number, end: number): boolean {
    if (this.#value === undefined) return true
    // Nearly every value is a text of fewer than 128 bytes.
    const { bytes } = wire
    const isPlainText = end - start >= 2 && bytes[start] === TEXT_TAG && bytes[start + 1] === end - start - 2
    if (isPlainText) return isSame(this.#valueBytes, bytes, start + 2, end)
    return scalarText(wire, start, end, VALUE_BYTES) === this.#value
  }
}

/**
 * Finds the conditions that attributes meet. Most attributes of a record are passed over by a sum of their key: with three rules
 * that match none, spans and log records take 1.5 to 1.7 times as long as without rules (bench/scenarios/decode.ts).
 */
export class AttributeConditions {
  readonly #all: AttributeCondition[] = []
  /** The same by the sums (`sumOf`) of their keys. */
  readonly #bySum: (AttributeCondition[] | undefined)[] = Array.from({ length: KEY_SUMS })
  /** Conditions that attributes of the current resource or record meet. */
  readonly #met: AttributeCondition[] = []

  add(attribute: DemandedAttribute): AttributeCondition {
    const condition = new AttributeCondition(attribute)
    this.#all.push(condition)
    const sum = sumOf(condition.key, 0, condition.key.length)
    this.#bySum[sum] = [...(this.#bySum[sum] ?? []), condition]
    return condition
  }

  /** Begins a resource. A record that was malformed may have left its own. */
  beginResource(): void {
    this.#met.length = 0
    for (const condition of this.#all) condition.onResource = condition.onRecord = false
  }

  /** Runs after the attributes of a resource. */
  endResource(): void {
    for (const condition of this.#met) condition.onResource = true
    this.#met.length = 0
  }

  /** Runs after the attributes of a record, before its rule is looked for. */
  beginRecord(): void {
    for (const condition of this.#met) condition.onRecord = true
  }

  /** Forgets the attributes of a record. */
  endRecord(): void {
    for (const condition of this.#met) condition.onRecord = false
    this.#met.length = 0
  }

  /** Notes the conditions that the attribute `[start, end)` of the current resource or record meets. */
  read(wire: WireCursor, start: number, end: number): void {
    const { bytes } = wire
    // As every SDK writes it: the key, then the value, and nothing else. Most keys are passed over without reading more.
    const length = bytes[start + 1] as number
    const valueAt = start + 2 + length
    const isPlain = end - start > 2 && bytes[start] === KEY_TAG && length < 0x80 && isWholeValue(bytes, valueAt, end)
    if (isPlain && this.#bySum[sumOf(bytes, start + 2, valueAt)] === undefined) return
    const { keyStart, keyEnd, value, valueStart, valueEnd } = readKeyValue(wire, start, end)
    for (const condition of this.#bySum[sumOf(bytes, keyStart, keyEnd)] ?? []) {
      if (isSame(condition.key, bytes, keyStart, keyEnd) && condition.hasValue(value, valueStart, valueEnd))
        this.#met.push(condition)
    }
  }
}

/** Returns a number below `KEY_SUMS` that few other keys have. */
function sumOf(bytes: Uint8Array, start: number, end: number): number {
  if (end <= start) return 0
  return (end - start + ((bytes[start] as number) << 3) + ((bytes[end - 1] as number) << 5)) % KEY_SUMS
}

/** Returns whether the field at `at` is the value of an attribute, shorter than 16 KiB, that ends at `end`. */
function isWholeValue(bytes: Uint8Array, at: number, end: number): boolean {
  if (at + 2 > end || bytes[at] !== VALUE_TAG) return false
  const low = bytes[at + 1] as number
  if (low < 0x80) return at + 2 + low === end
  const high = bytes[at + 2] as number
  return high < 0x80 && at + 3 + (low & 0x7f) + (high << 7) === end
}

/** Returns whether `[start, end)` has these bytes. */
export function isSame(expected: Uint8Array, bytes: Uint8Array, start: number, end: number): boolean {
  if (expected.length !== end - start) return false
  for (let i = 0; i < expected.length; i++) if (expected[i] !== bytes[start + i]) return false
  return true
}
