import { FULL_SNAPSHOT, MAX_TIME_MS } from '../json-lines.ts'
import { addReadNumber, findEscapeInName } from './token-checks.ts'
import type { FunctionCode, ModuleAssembler } from './wasm-module.ts'
import { F64, I32, I64 } from './wasm-values.ts'

/** The names of the members that are read, with what surrounds them. */
const TIMESTAMP = Buffer.from('"timestamp":')
const TYPE = Buffer.from('"type":')

/**
 * Writes the code that reads time and type of each event. The last of several members with the same name counts, as in
 * JSON.parse.
 */
export class EventFacts {
  readonly count: I32
  /** Whether a member cannot be read here. */
  readonly isUnknown: I32
  readonly #firstMs: F64
  readonly #lastMs: F64
  readonly #hasFullSnapshot: I32
  /** The members of the current event; NaN if absent or no number. */
  readonly #timestamp: F64
  readonly #type: F64
  readonly #readNumber: (at: I32) => F64

  constructor(module: ModuleAssembler) {
    this.isUnknown = module.global('isUnknown', I32.of(0))
    this.count = module.global('events', I32.of(0))
    this.#firstMs = module.global('firstMs', F64.of(0))
    this.#lastMs = module.global('lastMs', F64.of(0))
    this.#hasFullSnapshot = module.global('hasFullSnapshot', I32.of(0))
    this.#timestamp = module.global('timestamp', F64.of(0))
    this.#type = module.global('type', F64.of(0))
    this.#readNumber = addReadNumber(module, this.isUnknown)
  }

  /** Begins a text. */
  begin(code: FunctionCode): void {
    code.set(this.count, I32.of(0))
    code.set(this.isUnknown, I32.of(0))
    code.set(this.#firstMs, F64.of(Number.POSITIVE_INFINITY))
    code.set(this.#lastMs, F64.of(Number.NEGATIVE_INFINITY))
    code.set(this.#hasFullSnapshot, I32.of(0))
    this.#beginEvent(code)
  }

  /** Reads the member whose name begins with the quote at this address. */
  readMember(code: FunctionCode, quote: I32): void {
    const isTimestamp = quote
      .bytes8()
      .equals(I64.of(TIMESTAMP.readBigInt64LE()))
      .and(quote.bytes4(8).equals(TIMESTAMP.readInt32LE(8)))
    const isType = quote
      .bytes4()
      .equals(TYPE.readInt32LE())
      .and(quote.bytes4(3).equals(TYPE.readInt32LE(3)))
    const readTo = (member: F64, name: Buffer) => code.set(member, this.#readNumber(quote.plus(name.length)))
    code.if(
      isTimestamp,
      () => readTo(this.#timestamp, TIMESTAMP),
      () => {
        code.if(
          isType,
          () => readTo(this.#type, TYPE),
          // A name with escapes may be one of both.
          () => findEscapeInName(code, quote, this.isUnknown),
        )
      },
    )
  }

  /** Ends an event. */
  end(code: FunctionCode): void {
    code.set(this.count, this.count.plus(1))
    code.if(this.#timestamp.absolute().atMost(MAX_TIME_MS), () => {
      code.set(this.#firstMs, this.#firstMs.lesser(this.#timestamp))
      code.set(this.#lastMs, this.#lastMs.greater(this.#timestamp))
    })
    code.set(this.#hasFullSnapshot, this.#hasFullSnapshot.or(this.#type.equals(FULL_SNAPSHOT)))
    this.#beginEvent(code)
  }

  #beginEvent(code: FunctionCode): void {
    code.set(this.#timestamp, F64.of(Number.NaN))
    code.set(this.#type, F64.of(Number.NaN))
  }
}
