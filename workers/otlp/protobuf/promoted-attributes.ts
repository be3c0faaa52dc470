import type { GrowingBuffer } from '../../../clickhouse/native/growing-buffer.ts'
import { HttpStatusColumn } from '../../../clickhouse/tables/http-status-column.ts'
import { ValueType } from './any-value.ts'
import { endOfCut, isOverlongSessionId, TEXT_LIMITS } from './cut-text.ts'
import { endsWithKey, type KeyBytes, keyBytes } from './key-bytes.ts'
import { type PackedAttributes, unescaped } from './packed-attributes.ts'

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
  private readonly attributes: PackedAttributes
  private sessionStart = 0
  private sessionEnd = 0
  private isSessionEscaped = false
  private routeStart = 0
  private routeEnd = 0
  private isRouteEscaped = false
  private httpStatus = NO_STATUS
  private httpStatusOld = NO_STATUS
  /** Session of the resource if the span names none, else empty. */
  private resourceSession = ''
  /** Session ids of this payload that are longer than a session id may be. Their spans have no session. */
  overlongSessionIds = 0

  constructor(attributes: PackedAttributes) {
    this.attributes = attributes
  }

  begin(): void {
    this.sessionStart = this.sessionEnd = 0
    this.routeStart = this.routeEnd = 0
    this.isSessionEscaped = this.isRouteEscaped = false
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
    if (this.isSessionEscaped) target.bytesText(this.unescaped(this.sessionStart, this.sessionEnd))
    else {
      const { bytes, view } = this.attributes.values
      target.string(bytes, view, this.sessionStart, this.sessionEnd)
    }
  }

  appendHttpRoute(target: GrowingBuffer): void {
    if (this.isRouteEscaped) {
      const route = this.unescaped(this.routeStart, this.routeEnd)
      target.bytesText(route.subarray(0, endOfCut(route, 0, route.length, TEXT_LIMITS.httpRoute)))
      return
    }
    const { bytes, view } = this.attributes.values
    const end = endOfCut(bytes, this.routeStart, this.routeEnd, TEXT_LIMITS.httpRoute)
    target.string(bytes, view, this.routeStart, end)
  }

  /** Returns the session id as text. */
  sessionId(): string {
    if (this.resourceSession !== '') return this.resourceSession
    if (this.isSessionEscaped) return this.unescaped(this.sessionStart, this.sessionEnd).toString()
    return this.attributes.values.bytes.toString('utf8', this.sessionStart, this.sessionEnd)
  }

  private unescaped(start: number, end: number): Buffer {
    return unescaped(this.attributes.values.bytes.subarray(start, end))
  }

  /** Checks for `session.id` and `http.route`, which have the same length. */
  private lookForText(): void {
    const { valueStart, valueEnd } = this.attributes
    if (this.lastKeyIs(SESSION_ID)) {
      this.sessionStart = valueStart
      this.sessionEnd = this.lastCounts() ? valueEnd : valueStart
      this.isSessionEscaped = this.attributes.isEscaped
    } else if (this.lastKeyIs(HTTP_ROUTE)) {
      this.routeStart = valueStart
      this.routeEnd = this.lastCounts() ? valueEnd : valueStart
      this.isRouteEscaped = this.attributes.isEscaped
    }
  }

  private lastKeyIs(key: KeyBytes): boolean {
    const { keys, keyEnd } = this.attributes
    return endsWithKey(keys.view, keyEnd, key)
  }

  private lastCounts(): boolean {
    const { type } = this.attributes
    return type === ValueType.string || type === ValueType.int
  }

  /** Returns the last value as an HTTP status: decimal digits up to 32767, else `NO_STATUS`. */
  private lastStatus(): number {
    const { values, valueStart, valueEnd } = this.attributes
    const length = valueEnd - valueStart
    if (!this.lastCounts() || length === 0 || length > 5) return NO_STATUS
    let status = 0
    for (let i = valueStart; i < valueEnd; i++) {
      const digit = (values.bytes[i] as number) - 48
      if (digit < 0 || digit > 9) return NO_STATUS
      status = status * 10 + digit
    }
    return status <= MAX_HTTP_STATUS ? status : NO_STATUS
  }
}
