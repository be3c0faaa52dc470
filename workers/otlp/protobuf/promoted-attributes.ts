import type { GrowingBuffer } from '../../../clickhouse/native/growing-buffer.ts'
import { HttpStatusColumn } from '../../../clickhouse/tables/http-status-column.ts'
import { ValueType } from './any-value.ts'
import type { Attributes } from './attributes.ts'
import { endOfCut, isOverlongSessionId, TEXT_LIMITS } from './cut-text.ts'
import { endsWithKey, type KeyBytes, keyBytes } from './key-bytes.ts'

const SESSION_ID = keyBytes('session.id')
const HTTP_ROUTE = keyBytes('http.route')
const HTTP_STATUS = keyBytes('http.response.status_code')
/** Name of the status before the semantic conventions 1.20. */
const HTTP_STATUS_OLD = keyBytes('http.status_code')
const MAX_HTTP_STATUS = 32_767
/** The attribute is absent or not a status. */
const NO_STATUS = -1

/**
 * The attributes of one span that have their own columns, as positions of their texts in the attribute values. The last
 * value of a repeated key counts. Only strings and ints count. A span without a session has that of its resource.
 */
export class PromotedAttributes {
  private readonly attributes: Attributes
  private sessionStart = 0
  private sessionEnd = 0
  private routeStart = 0
  private routeEnd = 0
  private httpStatus = NO_STATUS
  private httpStatusOld = NO_STATUS
  /** Session of the resource if the span names none, else empty. */
  private resourceSession = ''
  /** Session ids of this payload that are longer than a session id may be. Their spans have no session. */
  overlongSessionIds = 0

  constructor(attributes: Attributes) {
    this.attributes = attributes
  }

  begin(): void {
    this.sessionStart = this.sessionEnd = 0
    this.routeStart = this.routeEnd = 0
    this.httpStatus = this.httpStatusOld = NO_STATUS
  }

  /** Begins a payload. */
  beginPayload(): void {
    this.overlongSessionIds = 0
  }

  /** Ends the attributes of a span that is stored. `resourceSession` is undefined if it is too long to be one. */
  end(resourceSession: string | undefined): void {
    this.resourceSession = ''
    if (this.sessionStart === this.sessionEnd) {
      if (resourceSession === undefined) this.overlongSessionIds++
      else this.resourceSession = resourceSession
    } else if (isOverlongSessionId(this.attributes.values.bytes, this.sessionStart, this.sessionEnd)) {
      this.overlongSessionIds++
      this.sessionEnd = this.sessionStart
    }
  }

  /** Checks the last appended attribute. The length of the key rules out most attributes. */
  look(keyLength: number): void {
    switch (keyLength) {
      case SESSION_ID.byteLength:
        this.lookForText()
        break
      case HTTP_STATUS.byteLength:
        if (this.lastKeyIs(HTTP_STATUS)) this.httpStatus = this.lastStatus()
        break
      case HTTP_STATUS_OLD.byteLength:
        if (this.lastKeyIs(HTTP_STATUS_OLD)) this.httpStatusOld = this.lastStatus()
    }
  }

  /** Value of the column of the HTTP status. */
  get httpStatusCode(): number {
    const status = this.httpStatus === NO_STATUS ? this.httpStatusOld : this.httpStatus
    if (status === NO_STATUS) return HttpStatusColumn.none
    return status === 0 ? HttpStatusColumn.zero : status
  }

  appendSessionId(target: GrowingBuffer): void {
    if (this.resourceSession !== '') {
      target.text(this.resourceSession)
      return
    }
    const { bytes, view } = this.attributes.values
    target.string(bytes, view, this.sessionStart, this.sessionEnd)
  }

  appendHttpRoute(target: GrowingBuffer): void {
    const { bytes, view } = this.attributes.values
    const end = endOfCut(bytes, this.routeStart, this.routeEnd, TEXT_LIMITS.httpRoute)
    target.string(bytes, view, this.routeStart, end)
  }

  /** Returns the session id as text. */
  sessionId(): string {
    if (this.resourceSession !== '') return this.resourceSession
    return this.attributes.values.bytes.toString('utf8', this.sessionStart, this.sessionEnd)
  }

  /** Checks for `session.id` and `http.route`, which have the same length. */
  private lookForText(): void {
    const { values, valueStart } = this.attributes
    if (this.lastKeyIs(SESSION_ID)) {
      this.sessionStart = valueStart
      this.sessionEnd = this.lastCounts() ? values.length : valueStart
    } else if (this.lastKeyIs(HTTP_ROUTE)) {
      this.routeStart = valueStart
      this.routeEnd = this.lastCounts() ? values.length : valueStart
    }
  }

  private lastKeyIs(key: KeyBytes): boolean {
    const { view, length } = this.attributes.keys
    return endsWithKey(view, length, key)
  }

  private lastCounts(): boolean {
    const { bytes, length } = this.attributes.types
    const type = bytes[length - 1]
    return type === ValueType.string || type === ValueType.int
  }

  /** Returns the last value as an HTTP status: decimal digits up to 32767, else `NO_STATUS`. */
  private lastStatus(): number {
    const { values, valueStart } = this.attributes
    const length = values.length - valueStart
    if (!this.lastCounts() || length === 0 || length > 5) return NO_STATUS
    let status = 0
    for (let i = valueStart; i < values.length; i++) {
      const digit = (values.bytes[i] as number) - 48
      if (digit < 0 || digit > 9) return NO_STATUS
      status = status * 10 + digit
    }
    return status <= MAX_HTTP_STATUS ? status : NO_STATUS
  }
}
