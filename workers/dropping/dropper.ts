import { DROP_CHARACTERS, type DropRule, type DropSignal } from '../../schemas/records/dropping.ts'
import { traceHash } from '../../shared/ids/trace-hash.ts'
import { readKeyValue, scalarText } from '../otlp/protobuf/any-value.ts'
import { MESSAGE_SPECS } from '../otlp/protobuf/message-specs.ts'
import type { RecordDropper } from '../otlp/protobuf/otlp-batch.ts'
import type { EmbeddedMessage } from '../otlp/protobuf/resource-cache.ts'
import { LENGTH_DELIMITED, type WireCursor } from '../otlp/protobuf/wire.ts'
import type { DroppedRecords } from '../sink/row-batch.ts'

/** The signal of the records of a table. */
const SIGNAL_OF: Readonly<Record<string, DropSignal>> = { spans: 'traces', logs: 'logs', metric_points: 'metrics' }
const SERVICE_NAME = 'service.name'
/** No value of a rule is longer. */
const VALUE_BYTES = 4 * DROP_CHARACTERS + 4
const TRACE_ID_BYTES = 16
/** Number of values of the hash of a trace. */
const HASHES = 2 ** 32

/** Tags of the fields of a record that rules look at; -1 if it has no such field. */
interface RecordTags {
  readonly name: number
  readonly traceId: number
  readonly attributes: number
}

const TAGS: Readonly<Record<Exclude<DropSignal, 'metrics'>, RecordTags>> = {
  traces: { name: tagOf('Span', 'name'), traceId: tagOf('Span', 'traceId'), attributes: tagOf('Span', 'attributes') },
  logs: {
    name: tagOf('LogRecord', 'eventName'),
    traceId: tagOf('LogRecord', 'traceId'),
    attributes: tagOf('LogRecord', 'attributes'),
  },
}
const METRIC_NAME_TAG = tagOf('Metric', 'name')
const RESOURCE_ATTRIBUTES_TAG = tagOf('Resource', 'attributes')

function tagOf(message: string, field: string): number {
  return ((MESSAGE_SPECS[message]?.[field]?.[0] ?? 0) << 3) | LENGTH_DELIMITED
}

/** An attribute that a rule demands, and whether the current resource and record have it. */
class Condition {
  readonly key: string
  readonly value: string | undefined
  onResource = false
  onRecord = false

  constructor({ key, value }: { readonly key: string; readonly value?: string | undefined }) {
    this.key = key
    this.value = value
  }
}

const NONE: readonly Condition[] = []

/** A rule in the form in which records are compared with it. */
interface CompiledRule {
  readonly name: string
  /** A trace with a hash below it is kept. */
  readonly keptBelow: number
  readonly signals: readonly DropSignal[] | undefined
  readonly services: readonly Condition[] | undefined
  readonly names: readonly string[] | undefined
  readonly beginnings: readonly string[]
  readonly attributes: readonly Condition[]
}

/** Records that one rule has dropped of a request. */
interface Dropped extends DroppedRecords {
  count: number
  readonly spans: number[]
}

/**
 * Finds the records that rules of a workspace drop (docs/api/dropping.md). Compares texts as they would be stored, after scrubbing.
 * It is compiled once for each revision, and has the state of one request at a time.
 */
export class Dropper implements RecordDropper {
  readonly revision: number
  readonly #rules: readonly CompiledRule[]
  readonly #conditions = new Map<string, Condition[]>()
  /** Whether a condition has a key of this length in bytes. Other keys are passed over. */
  readonly #keyLengths: boolean[] = []
  #signal: DropSignal = 'traces'
  #tags: RecordTags = TAGS.traces
  /** Rules for the signal of the request, and those of them that also match its current resource so far. */
  #ofSignal: readonly CompiledRule[] = []
  #ofResource: readonly CompiledRule[] = []
  /** Whether one of those looks at names. */
  #readsNames = false
  /** Conditions that the current record meets. */
  readonly #met: Condition[] = []
  #metricName = ''
  #dropped = new Map<string, Dropped>()

  constructor({ revision, rules }: { readonly revision: number; readonly rules: readonly DropRule[] }) {
    this.revision = revision
    this.#rules = rules.map(rule => this.#compile(rule))
  }

  begin(table: string): boolean {
    this.#signal = SIGNAL_OF[table] ?? 'traces'
    if (this.#signal !== 'metrics') this.#tags = TAGS[this.#signal]
    if (this.#dropped.size > 0) this.#dropped = new Map()
    this.#ofSignal = this.#rules.filter(({ signals }) => signals?.includes(this.#signal) ?? true)
    return this.#ofSignal.length > 0
  }

  beginResource(message: EmbeddedMessage): void {
    for (const conditions of this.#conditions.values())
      for (const condition of conditions) condition.onResource = condition.onRecord = false
    const wire = message.cursor()
    for (let pos = message.start; pos < message.end; ) {
      const tag = wire.readField(pos, message.end)
      pos = wire.next
      if (tag !== RESOURCE_ATTRIBUTES_TAG) continue
      for (const condition of this.#conditionsMet(wire, wire.start, pos)) condition.onResource = true
    }
    this.#ofResource = this.#ofSignal.filter(
      ({ services }) => services === undefined || services.some(({ onResource }) => onResource),
    )
    this.#readsNames = this.#ofResource.some(({ names }) => names !== undefined)
  }

  beginMetric(message: EmbeddedMessage, pointMessage: string): void {
    if (this.#ofResource.length === 0) return
    this.#tags = { name: -1, traceId: -1, attributes: tagOf(pointMessage, 'attributes') }
    this.#metricName = ''
    const wire = message.cursor()
    for (let pos = message.start; pos < message.end; ) {
      const tag = wire.readField(pos, message.end)
      pos = wire.next
      if (tag === METRIC_NAME_TAG) this.#metricName = wire.bytes.toString('utf8', wire.start, pos)
    }
  }

  drops(wire: WireCursor, start: number, end: number): boolean {
    if (this.#ofResource.length === 0) return false
    const { attributes, name, traceId } = this.#tags
    let [nameStart, nameEnd, traceStart, traceEnd] = [start, start, start, start]
    for (let pos = start; pos < end; ) {
      const tag = wire.readField(pos, end)
      const contentStart = wire.start
      pos = wire.next
      if (tag === attributes) this.#meet(this.#conditionsMet(wire, contentStart, pos))
      else if (tag === name) [nameStart, nameEnd] = [contentStart, pos]
      else if (tag === traceId) [traceStart, traceEnd] = [contentStart, pos]
    }
    const hasOwnName = this.#readsNames && this.#signal !== 'metrics'
    const recordName = hasOwnName ? wire.bytes.toString('utf8', nameStart, nameEnd) : this.#metricName
    const rule = this.#ofResource.find(candidate => matches(candidate, recordName))
    for (let met = this.#met.pop(); met !== undefined; met = this.#met.pop()) met.onRecord = false
    if (rule === undefined) return false
    const isOfTrace = traceEnd - traceStart === TRACE_ID_BYTES && !isZero(wire.bytes, traceStart, traceEnd)
    const hash = isOfTrace ? traceHash(wire.bytes, traceStart, traceEnd) : traceHash(wire.bytes, start, end)
    if (hash < rule.keptBelow) return false
    this.#count(rule, hash)
    return true
  }

  takeDropped(): ReadonlyMap<string, DroppedRecords> | undefined {
    const dropped = this.#dropped
    if (dropped.size === 0) return undefined
    this.#dropped = new Map()
    return dropped
  }

  #count({ name }: CompiledRule, hash: number): void {
    const dropped = this.#dropped.get(name) ?? { count: 0, spans: [] }
    dropped.count++
    if (this.#signal === 'traces') dropped.spans.push(hash)
    this.#dropped.set(name, dropped)
  }

  /** Returns the conditions that an attribute meets. */
  #conditionsMet(wire: WireCursor, start: number, end: number): readonly Condition[] {
    if (this.#conditions.size === 0) return NONE
    const { keyStart, keyEnd, value, valueStart, valueEnd } = readKeyValue(wire, start, end)
    if (this.#keyLengths[keyEnd - keyStart] !== true) return NONE
    const conditions = this.#conditions.get(wire.bytes.toString('utf8', keyStart, keyEnd))
    if (conditions === undefined) return NONE
    const text = scalarText(value, valueStart, valueEnd, VALUE_BYTES)
    return conditions.filter(condition => condition.value === undefined || condition.value === text)
  }

  #meet(conditions: readonly Condition[]): void {
    for (const condition of conditions) {
      condition.onRecord = true
      this.#met.push(condition)
    }
  }

  #compile({ name, signals, services, names, attributes, keep = 0 }: DropRule): CompiledRule {
    const isBeginning = (text: string) => text.endsWith('*')
    return {
      ...{ name, signals, keptBelow: keep * HASHES },
      services: services?.map(value => this.#condition({ key: SERVICE_NAME, value })),
      names: names?.filter(text => !isBeginning(text)),
      beginnings: (names ?? []).filter(isBeginning).map(text => text.slice(0, -1)),
      attributes: (attributes ?? []).map(attribute => this.#condition(attribute)),
    }
  }

  #condition(attribute: { readonly key: string; readonly value?: string | undefined }): Condition {
    const condition = new Condition(attribute)
    const sameKey = this.#conditions.get(condition.key) ?? []
    this.#conditions.set(condition.key, [...sameKey, condition])
    this.#keyLengths[Buffer.byteLength(condition.key)] = true
    return condition
  }
}

function matches({ names, beginnings, attributes }: CompiledRule, recordName: string): boolean {
  if (names !== undefined && !names.includes(recordName) && !beginnings.some(text => recordName.startsWith(text)))
    return false
  return attributes.every(({ onResource, onRecord }) => onResource || onRecord)
}

function isZero(bytes: Uint8Array, start: number, end: number): boolean {
  for (let i = start; i < end; i++) if (bytes[i] !== 0) return false
  return true
}
