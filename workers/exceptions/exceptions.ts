import { LRUCache } from 'lru-cache'
import { endOfString, startOfString } from '../../clickhouse/native/native-string.ts'
import { ExceptionSource } from '../../clickhouse/tables/exceptions-table.ts'
import { KIB, MIB } from '../../schemas/units.ts'
import { identify } from '../../shared/grouping/fingerprint.ts'
import { stackToRead } from '../../shared/grouping/stack-to-read.ts'
import type { Attributes } from '../otlp/protobuf/attributes.ts'
import { cutText } from '../otlp/protobuf/cut-text.ts'
import { endsWithKey, type KeyBytes, keyBytes } from '../otlp/protobuf/key-bytes.ts'
import type { AttributeTexts } from '../otlp/protobuf/place-attributes.ts'
import type { PayloadSource } from '../otlp/protobuf/refusal.ts'
import type { ResourceEntry } from '../otlp/protobuf/resource-cache.ts'
import { cutStack } from './cut-stack.ts'
import { type DebugIds, NO_DEBUG_IDS, readDebugIds } from './debug-ids.ts'
import type { ExceptionRecords } from './exception-records.ts'
import { placesOf, titleOfFailure } from './places.ts'

/**
 * Findings of one payload. A client that makes up exceptions would fill the list of findings, and each finding has rows in
 * eight tables. The limit depends on the payload alone: a limit per minute would give a batch that is formed again other
 * rows.
 */
const FINDINGS_PER_PAYLOAD = 200
/** Deriving an exception takes 20 to 110 µs. A hostile payload must not block a worker for seconds. */
const LIMIT_PER_PAYLOAD = 10_000
/** Length to which `exceptions` cuts a name. The span keeps the whole text. */
export const NAME_LIMIT_BYTES = 1024
/** Length to which `exceptions` cuts a message. */
export const MESSAGE_LIMIT_BYTES = 8 * KIB
const STACKTRACE_LIMIT_BYTES = 32 * KIB
const DEBUG_IDS_LIMIT_BYTES = 32 * KIB
/** Characters of a stack that are in the key of the cache. They are hashed, which takes longer than comparing the rest. */
const KEY_CHARACTERS = 256

/** A finding, and the texts by which it was found. */
interface KnownFinding {
  readonly text: string
  /** Undefined if the id does not depend on the message. */
  readonly message: string | undefined
  readonly findingId: string
  /** What is sent alike, as 16 bytes (`exceptions.variant_id`). */
  readonly variantId: Buffer
  readonly topFrame: string
}

/**
 * The findings of exceptions that were derived last, of all batches: reading a stack takes up to 110 µs, a look-up 1.
 * They follow from the texts alone. Their size is in characters.
 */
const FINDINGS = new LRUCache<string, KnownFinding>({ maxSize: 8 * MIB })

const TYPE = keyBytes('exception.type')
const MESSAGE = keyBytes('exception.message')
const STACKTRACE = keyBytes('exception.stacktrace')
const DEBUG_IDS = keyBytes('exception.debug_ids')
const ESCAPED = keyBytes('exception.escaped')
const FINGERPRINT = keyBytes('exception.fingerprint')

/** Attributes and time that were recorded with an exception. */
interface ExceptionDetails {
  type: string
  message: string
  stacktrace: string
  debugIds: DebugIds
  fingerprint: string
  escaped: boolean
  timeLow: number
  timeHigh: number
}

const NO_DETAILS = { type: '', message: '', stacktrace: '', debugIds: NO_DEBUG_IDS, fingerprint: '', escaped: false }

/** The span or log record in which exceptions occurred. Ids are positions in `bytes`. */
export interface OccurrenceContext {
  bytes: Buffer
  view: DataView
  traceIdStart: number
  spanIdStart: number
  /** Undefined without a parent, or if it is not known. */
  parentSpanIdStart: number | undefined
  spanName: string
  sessionId: string
  /** Attributes of the span or record that state where it happened. */
  places: AttributeTexts
}

/**
 * Derives exceptions, each with its finding, as records for the queue `exceptions`.
 */
export class ExceptionDeriver {
  private readonly records: ExceptionRecords
  private readonly pending: ExceptionDetails[] = []
  private payload: PayloadSource = { workspaceId: '', surfaceId: '', receivedAtMs: 0 }
  private derived = 0
  /** Number of exceptions of this payload above the limit, which are not derived. */
  overLimit = 0
  /** Number of exceptions of this payload that are not derived because their finding is above the limit of findings. */
  findingsOverLimit = 0
  private readonly findingsOfPayload = new Set<string>()

  constructor(records: ExceptionRecords) {
    this.records = records
  }

  /** Prepares for the exceptions of a payload. */
  beginPayload(payload: PayloadSource): void {
    this.payload = payload
    this.derived = 0
    this.overLimit = 0
    this.findingsOverLimit = 0
    // Clearing an empty set allocates memory.
    if (this.findingsOfPayload.size > 0) this.findingsOfPayload.clear()
    this.pending.length = 0
  }

  /** Notes an exception until its span is stored or rejected. `attributes` are its own. */
  note(attributes: Attributes, timeLow: number, timeHigh: number): void {
    if (this.derived + this.pending.length >= LIMIT_PER_PAYLOAD) {
      this.overLimit++
      return
    }
    const details = { ...NO_DETAILS, timeLow, timeHigh }
    readDetails(attributes, details)
    this.pending.push(details)
  }

  /** Forgets the noted exceptions of a rejected span. */
  discardPending(): void {
    this.pending.length = 0
  }

  /** Stores the noted exceptions as occurrences in one span. */
  derivePending(source: number, resource: ResourceEntry, context: OccurrenceContext): void {
    for (const details of this.pending) this.append(source, details, resource, context)
    this.pending.length = 0
  }

  /** Stores an occurrence for a span that failed without recording an exception. */
  deriveFailure(
    message: string,
    timeLow: number,
    timeHigh: number,
    resource: ResourceEntry,
    context: OccurrenceContext,
  ): void {
    if (this.derived >= LIMIT_PER_PAYLOAD) {
      this.overLimit++
      return
    }
    const type = titleOfFailure(context.spanName, context.places)
    const details = { ...NO_DETAILS, type, message, timeLow, timeHigh }
    this.append(ExceptionSource.spanStatus, details, resource, context)
  }

  private append(source: number, details: ExceptionDetails, resource: ResourceEntry, context: OccurrenceContext): void {
    this.derived++
    const { findingId, variantId, topFrame } = this.identityOf(details, resource)
    if (!this.findingsOfPayload.has(findingId)) {
      if (this.findingsOfPayload.size >= FINDINGS_PER_PAYLOAD) {
        this.findingsOverLimit++
        return
      }
      this.findingsOfPayload.add(findingId)
    }
    const { serviceNameText: serviceName, serviceVersionText: serviceVersion } = resource
    const places = placesOf(context.places, resource.places)
    this.records.append({
      ...context,
      ...details,
      ...places,
      source,
      findingId,
      variantId,
      topFrame,
      serviceName,
      serviceVersion,
    })
  }

  /** Returns the finding and the variant of an exception. The latest text of each key is kept. */
  private identityOf(
    details: ExceptionDetails,
    { serviceNameText: serviceName, serviceVersionText: version }: ResourceEntry,
  ): KnownFinding {
    const { workspaceId, surfaceId } = this.payload
    const { type, message, stacktrace, fingerprint } = details
    // The key has the inputs of the id, and their lengths, because any of these texts may contain a separator.
    const text = fingerprint === '' ? stackToRead(details) : ''
    const lengths = `${serviceName.length} ${version.length} ${type.length} ${text.length} ${fingerprint.length}`
    const names = `${workspaceId} ${surfaceId} ${lengths} ${serviceName}${version}${type}${fingerprint}`
    const key = names + text.slice(0, KEY_CHARACTERS)
    const known = FINDINGS.get(key)
    if (known !== undefined && known.text === text && (known.message ?? message) === message) return known
    const origin = { workspaceId, surfaceId, serviceName, serviceVersion: version }
    const exception = { ...origin, type, message, stacktrace, fingerprint }
    const { id: findingId, variantId, usesMessage, topFrame } = identify(exception, text)
    const found = { text, message: usesMessage ? message : undefined, findingId, variantId, topFrame }
    // A text from the first frame on is a slice that keeps the whole stack in memory.
    FINDINGS.set(key, found, { size: key.length + message.length + stacktrace.length })
    return found
  }
}

function readDetails(attributes: Attributes, details: ExceptionDetails): void {
  const { keys, values } = attributes
  let keyAt = 0
  let valueAt = 0
  for (let i = 0; i < attributes.count; i++) {
    const keyStart = startOfString(keys.bytes, keyAt)
    const valueStart = startOfString(values.bytes, valueAt)
    keyAt = endOfString(keys.bytes, keyAt)
    valueAt = endOfString(values.bytes, valueAt)
    const keyIs = (key: KeyBytes) => keyAt - keyStart === key.byteLength && endsWithKey(keys.view, keyAt, key)
    const text = (limitBytes: number) => cutText(values.bytes, valueStart, valueAt, limitBytes)
    if (keyIs(TYPE)) details.type = text(NAME_LIMIT_BYTES)
    else if (keyIs(MESSAGE)) details.message = text(MESSAGE_LIMIT_BYTES)
    else if (keyIs(STACKTRACE)) details.stacktrace = cutStack(values.bytes, valueStart, valueAt, STACKTRACE_LIMIT_BYTES)
    else if (keyIs(DEBUG_IDS)) details.debugIds = readDebugIds(text(DEBUG_IDS_LIMIT_BYTES))
    else if (keyIs(FINGERPRINT)) details.fingerprint = text(NAME_LIMIT_BYTES)
    else if (keyIs(ESCAPED)) details.escaped = values.bytes.toString('latin1', valueStart, valueAt) === 'true'
  }
}
