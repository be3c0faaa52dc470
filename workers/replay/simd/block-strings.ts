import type { TextBlock } from './text-block.ts'
import type { FunctionCode } from './wasm-module.ts'
import { I64 } from './wasm-values.ts'

const ODD_BITS = 0xaaaa_aaaa_aaaa_aaaan

/** The strings of a block. */
export interface Strings {
  /** Characters after a backslash that begins an escape. */
  readonly escaped: I64
  readonly quote: I64
  /** Strings with their opening quotes, but without their closing ones. */
  readonly inString: I64
  readonly opening: I64
  readonly closing: I64
}

/** Finds the strings of a block. All bits of `inStringBefore` are set while a string continues in the next block. */
export function findStrings(code: FunctionCode, block: TextBlock, inStringBefore: I64): Strings {
  const escaped = findEscaped(code, block)
  const quote = code.let(block.equals('"').without(escaped))
  // Each bit becomes the parity of the quotes up to it.
  const inString = code.let(quote)
  for (const bits of [1n, 2n, 4n, 8n, 16n, 32n]) code.set(inString, inString.xor(inString.shiftLeft(bits)))
  code.set(inString, inString.xor(inStringBefore))
  code.set(inStringBefore, inString.fillWithHighest())
  const opening = code.let(quote.and(inString))
  const closing = code.let(quote.without(inString))
  return { escaped, quote, inString, opening, closing }
}

/** Every second backslash of a row is escaped itself. This is the way of `json_escape_scanner` in simdjson. */
function findEscaped(code: FunctionCode, block: TextBlock): I64 {
  const before = code.variable(I64)
  const backslash = code.let(block.equals('\\'))
  const escaped = code.let(before)
  code.if(backslash.or(before).hasBits(), () => {
    const potential = code.let(backslash.without(before))
    const codes = code.let(potential.shiftLeft(1n).or(I64.of(ODD_BITS)).minus(potential).xor(ODD_BITS))
    code.set(escaped, codes.xor(backslash.or(before)))
    code.set(before, codes.and(backslash).shiftRight(63n))
  })
  return escaped
}
