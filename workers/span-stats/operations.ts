import type { GrowingBuffer } from '../../clickhouse/native/growing-buffer.ts'
import { MIB } from '../../schemas/units.ts'
import { BytesCache } from '../otlp/protobuf/bytes-cache.ts'
import { cutText } from '../otlp/protobuf/cut-text.ts'
import { OTHER } from './stats-scopes.ts'

/** Length to which operations are cut, in bytes. */
const OPERATION_BYTES = 256
const CACHE_BYTES = 8 * MIB

/** Number of the operation `other`. */
export const REST = 0
/** Returned for an operation without a number. */
export const UNKNOWN = -1

/** The operation of spans with a name, as long as they have the same route as the ones before. */
interface OfName {
  readonly route: Uint8Array
  readonly operation: number
}

/**
 * Numbers the operations of a batch: the names of spans, or their routes if the names do not contain them. An operation has a
 * number once it was remembered, so that those over the limits take no memory.
 */
export class Operations {
  readonly texts: string[] = [OTHER]
  readonly #numbers = new Map([[OTHER, REST]])
  readonly #names: GrowingBuffer
  readonly #routes: GrowingBuffer
  readonly #ofNames = new BytesCache<OfName>(CACHE_BYTES)
  /** The span that `of` was called with last. */
  #text = ''
  #nameStart = 0
  #nameEnd = 0
  #routeStart = 0
  #routeEnd = 0

  constructor(names: GrowingBuffer, routes: GrowingBuffer) {
    this.#names = names
    this.#routes = routes
  }

  /** Returns the number of the operation of a span with this name and route, or `UNKNOWN`. */
  of(nameStart: number, nameEnd: number, routeStart: number, routeEnd: number): number {
    const known = this.#ofNames.get(this.#names.view, nameStart, nameEnd)
    if (known !== undefined && this.#isRoute(known.route, routeStart, routeEnd)) return known.operation
    const name = cutText(this.#names.bytes, nameStart, nameEnd, OPERATION_BYTES)
    const route = cutText(this.#routes.bytes, routeStart, routeEnd, OPERATION_BYTES)
    this.#text = name.includes(route) ? name : route
    this.#nameStart = nameStart
    this.#nameEnd = nameEnd
    this.#routeStart = routeStart
    this.#routeEnd = routeEnd
    const number = this.#numbers.get(this.#text)
    if (number !== undefined) this.#keep(number)
    return number ?? UNKNOWN
  }

  /** Gives the operation its number for which `of` has just returned `UNKNOWN`. */
  remember(): number {
    const number = this.texts.push(this.#text) - 1
    this.#numbers.set(this.#text, number)
    this.#keep(number)
    return number
  }

  #keep(operation: number): void {
    const route = Uint8Array.from(this.#routes.bytes.subarray(this.#routeStart, this.#routeEnd))
    this.#ofNames.set(this.#names.bytes, this.#names.view, this.#nameStart, this.#nameEnd, { route, operation })
  }

  #isRoute(route: Uint8Array, start: number, end: number): boolean {
    if (route.length !== end - start) return false
    for (let i = 0; i < route.length; i++) if (route[i] !== this.#routes.bytes[start + i]) return false
    return true
  }
}
