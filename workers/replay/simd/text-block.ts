import type { FunctionCode } from './wasm-module.ts'
import { type I32, I64, type V128 } from './wasm-values.ts'

/** Bytes that are checked at a time: a mask has a bit for each. */
export const BLOCK_BYTES = 64
const VECTOR_BYTES = 16

/** A block of text in four vectors. Its methods return masks. */
export class TextBlock {
  readonly #vectors: readonly V128[]

  /** Loads the block at this address. */
  constructor(code: FunctionCode, address: I32) {
    this.#vectors = [0, 1, 2, 3].map(index => code.let(address.bytes16(index * VECTOR_BYTES)))
  }

  /** The bytes that are this character. */
  equals(character: string): I64 {
    return this.#mask(vector => vector.equals(character.charCodeAt(0)))
  }

  /** Controls and the space. */
  blanks(): I64 {
    return this.#mask(vector => vector.atMost(0x20))
  }

  digits(): I64 {
    return this.#mask(vector => vector.minus(0x30).atMost(9))
  }

  #mask(test: (vector: V128) => V128): I64 {
    const parts = this.#vectors.map((vector, index) =>
      test(vector)
        .toBits()
        .toI64()
        .shiftLeft(BigInt(index * VECTOR_BYTES)),
    )
    return parts.reduce((mask, part) => mask.or(part), I64.of(0n))
  }
}

/** Runs the body for each bit of a mask, from the lowest on, with its position. */
export function eachBit(code: FunctionCode, mask: I64, body: (position: I64) => void): void {
  const rest = code.let(mask)
  code.while(rest.hasBits(), () => {
    body(code.let(rest.lowestBit()))
    code.set(rest, rest.and(rest.minus(1n)))
  })
}
