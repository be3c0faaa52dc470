import type { DropRule, DropSignal } from '../../schemas/records/dropping.ts'
import { traceHash } from '../../shared/ids/trace-hash.ts'
import { MESSAGE_SPECS } from '../otlp/protobuf/message-specs.ts'
import type { RecordDropper } from '../otlp/protobuf/otlp-batch.ts'
import type { EmbeddedMessage } from '../otlp/protobuf/resource-cache.ts'
import { LENGTH_DELIMITED, type WireCursor } from '../otlp/protobuf/wire.ts'
import type { DroppedRecords } from '../sink/row-batch.ts'
import { type AttributeCondition, AttributeConditions, isSame } from './attribute-conditions.ts'

/** The signal of the records of a table. */
const SIGNAL_OF: Readonly<Record<string, DropSignal>> = { spans: 'traces', logs: 'logs', metric_points: 'metrics' }
const SERVICE_NAME = 'service.name'
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

const NO_BYTES = new Uint8Array()

/** A name, or the beginning of names, in UTF-8. */
interface RecordName {
  readonly bytes: Uint8Array
  readonly isBeginning: boolean
}

/** A rule in the form in which records are compared with it. */
interface CompiledRule {
  readonly name: string
  /** A trace with a hash below it is kept. */
  readonly keptBelow: number
  readonly signals: readonly DropSignal[] | undefined
  readonly services: readonly AttributeCondition[] | undefined
  readonly names: readonly RecordName[] | undefined
  readonly attributes: readonly AttributeCondition[]
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
  readonly #attributes = new AttributeConditions()
  #signal: DropSignal = 'traces'
  #tags: RecordTags = TAGS.traces
  /** Rules for the signal of the request, and those of them that also match its current resource so far. */
  #ofSignal: readonly CompiledRule[] = []
  #ofResource: readonly CompiledRule[] = []
  /** Whether one of those looks at attributes of records. */
  #readsAttributes = false
  /** The bytes that have the name of the current metric, and where it is in them. */
  #metricBytes: Uint8Array = NO_BYTES
  #metricStart = 0
  #metricEnd = 0
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
    this.#attributes.beginResource()
    const wire = message.cursor()
    for (let pos = message.start; pos < message.end; ) {
      const tag = wire.readField(pos, message.end)
      pos = wire.next
      if (tag === RESOURCE_ATTRIBUTES_TAG) this.#attributes.read(wire, wire.start, pos)
    }
    this.#attributes.endResource()
    this.#ofResource = this.#ofSignal.filter(
      ({ services }) => services === undefined || services.some(({ onResource }) => onResource),
    )
    this.#readsAttributes = this.#ofResource.some(({ attributes }) => !attributes.every(({ onResource }) => onResource))
  }

  beginMetric(message: EmbeddedMessage, pointMessage: string): void {
    if (this.#ofResource.length === 0) return
    this.#tags = { name: -1, traceId: -1, attributes: tagOf(pointMessage, 'attributes') }
    const wire = message.cursor()
    this.#metricBytes = wire.bytes
    this.#metricStart = this.#metricEnd = 0
    for (let pos = message.start; pos < message.end; ) {
      const tag = wire.readField(pos, message.end)
      pos = wire.next
      if (tag !== METRIC_NAME_TAG) continue
      this.#metricStart = wire.start
      this.#metricEnd = pos
    }
  }

  drops(wire: WireCursor, start: number, end: number): boolean {
    if (this.#ofResource.length === 0) return false
    const { attributes, name, traceId } = this.#tags
    const isMetric = this.#signal === 'metrics'
    let nameStart = isMetric ? this.#metricStart : start
    let nameEnd = isMetric ? this.#metricEnd : start
    let traceStart = start
    let traceEnd = start
    for (let pos = start; pos < end; ) {
      const tag = wire.readField(pos, end)
      const contentStart = wire.start
      pos = wire.next
      if (tag === attributes) {
        if (this.#readsAttributes) this.#attributes.read(wire, contentStart, pos)
      } else if (tag === name) {
        nameStart = contentStart
        nameEnd = pos
      } else if (tag === traceId) {
        traceStart = contentStart
        traceEnd = pos
      }
    }
    const nameBytes = isMetric ? this.#metricBytes : wire.bytes
    this.#attributes.beginRecord()
    const rule = this.#ofResource.find(candidate => matches(candidate, nameBytes, nameStart, nameEnd))
    this.#attributes.endRecord()
    if (rule === undefined) return false
    const isOfTrace = traceEnd - traceStart === TRACE_ID_BYTES && !isZero(wire.bytes, traceStart, traceEnd)
    const hash = isOfTrace ? traceHash(wire.bytes, traceStart, traceEnd) : traceHash(wire.bytes, start, end)
    if (hash < rule.keptBelow) return false
    this.#count(rule, hash)
    return true
  }

  takeDropped(): ReadonlyMap<string, DroppedRecords> | undefined {
    // The request is not kept in memory.
    this.#metricBytes = NO_BYTES
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

  #compile({ name, signals, services, names, attributes, keep = 0 }: DropRule): CompiledRule {
    return {
      ...{ name, signals, keptBelow: keep * HASHES },
      services: services?.map(value => this.#attributes.add({ key: SERVICE_NAME, value })),
      names: names?.map(text => {
        const isBeginning = text.endsWith('*')
        return { bytes: Buffer.from(isBeginning ? text.slice(0, -1) : text), isBeginning }
      }),
      attributes: (attributes ?? []).map(attribute => this.#attributes.add(attribute)),
    }
  }
}

function isNamed({ bytes: name, isBeginning }: RecordName, bytes: Uint8Array, start: number, end: number): boolean {
  if (!isBeginning) return isSame(name, bytes, start, end)
  return name.length <= end - start && isSame(name, bytes, start, start + name.length)
}

function matches({ names, attributes }: CompiledRule, bytes: Uint8Array, start: number, end: number): boolean {
  if (names !== undefined && !names.some(name => isNamed(name, bytes, start, end))) return false
  return attributes.every(({ onResource, onRecord }) => onResource || onRecord)
}

function isZero(bytes: Uint8Array, start: number, end: number): boolean {
  for (let i = start; i < end; i++) if (bytes[i] !== 0) return false
  return true
}
