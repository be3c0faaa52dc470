import type { PatternField, ScrubbingRule } from '../../../schemas/records/scrubbing.ts'
import { MASK, type Scrubber } from '../../../shared/scrubbing/scrubber.ts'
import { MAX_NESTING } from './any-value.ts'
import { MESSAGE_SPECS } from './message-specs.ts'
import { UNREADABLE_RECORD } from './refusal.ts'
import { LENGTH_DELIMITED, WireCursor } from './wire.ts'

/** A field with texts. */
interface TextField {
  /** The message in the field. Without one, the field is a text. */
  readonly message?: TextMessage | undefined
  /** The name of the texts in it, if patterns are looked for in them. */
  readonly pattern?: PatternField | undefined
  /** Whether patterns are looked for that are for the texts around it. */
  readonly inherits: boolean
}

/** Fields with texts of a message, by number. */
type TextMessage = (TextField | undefined)[]

/** Fields in which patterns are looked for. */
const PATTERN_FIELD_OF: Readonly<Record<string, PatternField>> = {
  'Span.name': 'name',
  'Event.name': 'name',
  'Metric.name': 'name',
  'LogRecord.eventName': 'name',
  'LogRecord.body': 'body',
  'Status.message': 'status',
}

const MESSAGES: ReadonlyMap<string, TextMessage> = textMessages()
const KEY_VALUE = MESSAGES.get('KeyValue')
const ANY_VALUE = MESSAGES.get('AnyValue')
/** The requests of the tables. */
const REQUESTS: Readonly<Record<string, TextMessage | undefined>> = {
  spans: MESSAGES.get('ExportTraceServiceRequest'),
  logs: MESSAGES.get('ExportLogsServiceRequest'),
  metric_points: MESSAGES.get('ExportMetricsServiceRequest'),
}

/** Tags of the members of AnyValue that are texts or numbers, and of the key of KeyValue. */
const STRING_TAG = 0x0a
const INT_TAG = 0x18
const DOUBLE_TAG = 0x21
const KEY_TAG = 0x0a
const NO_PATTERNS: readonly ScrubbingRule[] = []

function textMessages(): Map<string, TextMessage> {
  const messages = new Map(Object.keys(MESSAGE_SPECS).map(name => [name, [] as TextMessage]))
  for (const [name, fields] of Object.entries(MESSAGE_SPECS)) {
    for (const [fieldName, [number, type]] of Object.entries(fields)) {
      const message = messages.get(type)
      const pattern = PATTERN_FIELD_OF[`${name}.${fieldName}`]
      if (message !== undefined || type === 'string' || type === 'bytes')
        (messages.get(name) as TextMessage)[number] = { message, pattern, inherits: fieldName !== 'key' }
    }
  }
  return messages
}

/** Bytes of a request that are replaced. */
interface Edit {
  readonly start: number
  readonly end: number
  bytes: Uint8Array
}

/** A field that is being read: its tag, and where it, its content and the next field begin. */
interface Place {
  readonly tag: number
  readonly start: number
  readonly content: number
  readonly end: number
}

/**
 * Returns a request of OTLP for a table with the parts of its texts replaced that match a rule: in names, messages, bodies, keys
 * and values at any depth, and ints and doubles of attributes that are numbers of cards. A value stays on which a rule by key
 * decides.
 * The same bytes if nothing matches. Throws a Refusal if a message on the way to a match is malformed.
 */
export function scrubMessage(scrubber: Scrubber, table: string, body: Buffer): Buffer {
  const request = REQUESTS[table]
  if (request === undefined) throw new TypeError(`no request is for ${table}`)
  return new MessageScrubber(scrubber, body).run(request)
}

/**
 * Walks down to the texts in which a value may be. Most of a request has none, and is passed over by lengths; with patterns, all
 * texts are visited. The changes, also of lengths, are collected first, so that the request is copied once.
 */
class MessageScrubber {
  readonly #scrubber: Scrubber
  readonly #body: Buffer
  readonly #wire: WireCursor
  readonly #edits: Edit[] = []
  /** The next position at which a value may be. */
  #candidate = -1

  constructor(scrubber: Scrubber, body: Buffer) {
    this.#scrubber = scrubber
    this.#body = body
    this.#wire = new WireCursor(body)
  }

  run(request: TextMessage): Buffer {
    const body = this.#body
    this.#scrubber.beginRequest()
    const growth = this.#walk(request, 0, body.length, NO_PATTERNS, 0)
    if (this.#edits.length === 0) return body
    const out = Buffer.allocUnsafe(body.length + growth)
    let [at, length] = [0, 0]
    for (const { start, end, bytes } of this.#edits) {
      length += body.copy(out, length, at, start)
      out.set(bytes, length)
      length += bytes.length
      at = end
    }
    body.copy(out, length, at)
    return out
  }

  /** Returns whether a match may be in `[start, end)`. */
  #mayHave(start: number, end: number): boolean {
    const { scanner, hasPatterns } = this.#scrubber
    if (hasPatterns) return true
    if (this.#candidate < start) {
      const { length } = this.#body
      this.#candidate = scanner?.scan(this.#body, start, length) ?? length
    }
    return this.#candidate < end
  }

  /** Collects the changes of a message, and returns by how many bytes it grows. `depth` counts nested values. */
  #walk(message: TextMessage, start: number, end: number, patterns: readonly ScrubbingRule[], depth: number): number {
    const wire = this.#wire
    let growth = 0
    for (let pos = start; pos < end && this.#mayHave(pos, end); ) {
      const tag = wire.readField(pos, end)
      const place: Place = { tag, start: pos, content: wire.start, end: wire.next }
      pos = wire.next
      if (!this.#mayHave(place.start, pos)) continue
      if (message === ANY_VALUE && (tag === INT_TAG || tag === DOUBLE_TAG)) {
        growth += this.#editNumber(place)
        continue
      }
      const field = (tag & 7) === LENGTH_DELIMITED ? message[tag >>> 3] : undefined
      if (field !== undefined) growth += this.#editContent(place, () => this.#readField(field, place, patterns, depth))
    }
    return growth
  }

  /** Reads the content of a field, and returns by how many bytes it grows. */
  #readField(
    { message, pattern, inherits }: TextField,
    { content, end }: Place,
    outer: readonly ScrubbingRule[],
    depth: number,
  ): number {
    const inherited = inherits ? outer : NO_PATTERNS
    const patterns = pattern === undefined ? inherited : this.#scrubber.patternsOf(pattern)
    if (message === undefined) return this.#editText(content, end, patterns)
    if (message === KEY_VALUE) return this.#editPair(content, end, patterns, depth)
    if (message === ANY_VALUE && depth > MAX_NESTING) return this.#mask(content, end)
    const isUnreadable = end - content === 4 && this.#wire.view.getUint32(content, true) === UNREADABLE_RECORD
    return isUnreadable ? 0 : this.#walk(message, content, end, patterns, message === ANY_VALUE ? depth + 1 : depth)
  }

  /** Changes an attribute, unless its key decides on its value. */
  #editPair(start: number, end: number, outer: readonly ScrubbingRule[], depth: number): number {
    const wire = this.#wire
    let [keyStart, keyEnd] = [end, end]
    for (let pos = start; pos < end; pos = wire.next) {
      if (wire.readField(pos, end) !== KEY_TAG) continue
      keyStart = wire.start
      keyEnd = wire.next
    }
    const decision = this.#scrubber.decisionOf(this.#body, keyStart, keyEnd)
    if (decision === 'decided') return 0
    return this.#walk(KEY_VALUE as TextMessage, start, end, decision.length > 0 ? decision : outer, depth)
  }

  #editText(start: number, end: number, patterns: readonly ScrubbingRule[]): number {
    const body = this.#body
    const from = this.#scrubber.hasPatterns ? start : Math.max(start, this.#candidate)
    let growth = 0
    for (const part of this.#scrubber.findParts(body, { start, end }, patterns, from)) {
      const text = this.#scrubber.replace(part.rule, () => body.subarray(part.start, part.end)) ?? ''
      growth += this.#edit(part.start, part.end, Buffer.from(text))
    }
    return growth
  }

  /** Replaces an int or a double of AnyValue that is the number of a card by a text. */
  #editNumber({ tag, start, content, end }: Place): number {
    const { low, high, view } = this.#wire
    const value = tag === INT_TAG ? (BigInt(high) << 32n) | BigInt(low) : view.getFloat64(content, true)
    const rule = this.#scrubber.scanner?.ruleOfNumber(value)
    return rule === undefined
      ? 0
      : this.#edit(start, end, textValue(this.#scrubber.replace(rule, () => String(value)) ?? ''))
  }

  /** Replaces the content of an AnyValue that is nested too deeply to look into it. */
  #mask(start: number, end: number): number {
    return this.#edit(start, end, textValue(MASK))
  }

  #edit(start: number, end: number, bytes: Uint8Array): number {
    this.#edits.push({ start, end, bytes })
    return bytes.length - (end - start)
  }

  /** Changes the content of a field, and its length if that has changed. */
  #editContent({ tag, start, content, end }: Place, change: () => number): number {
    const edits = this.#edits
    const head: Edit = { start, end: content, bytes: Buffer.alloc(0) }
    edits.push(head)
    const count = edits.length
    const growth = change()
    if (edits.length === count) {
      edits.pop()
      return 0
    }
    head.bytes = Buffer.from([...varint(tag), ...varint(end - content + growth)])
    return growth + head.bytes.length - (content - start)
  }
}

/** Returns an AnyValue with a text of fewer than 128 bytes. */
function textValue(text: string): Uint8Array {
  const bytes = Buffer.from(text)
  return Buffer.concat([Buffer.from([STRING_TAG, bytes.length]), bytes])
}

function varint(value: number): number[] {
  const bytes: number[] = []
  for (; value > 0x7f; value = Math.floor(value / 128)) bytes.push((value % 128) | 0x80)
  return [...bytes, value]
}
