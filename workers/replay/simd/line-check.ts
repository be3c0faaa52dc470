import { CHUNK_LIMITS } from '../json-lines.ts'
import { findStrings, type Strings } from './block-strings.ts'
import { EventFacts } from './event-facts.ts'
import { BLOCK_BYTES, eachBit, TextBlock } from './text-block.ts'
import { addIsEscape, addScalarEnd } from './token-checks.ts'
import { type FunctionCode, ModuleAssembler } from './wasm-module.ts'
import { I32, I64 } from './wasm-values.ts'

/** Longest text that is proven: even one line of it is not too long, nor can it have too many values, so neither is counted. */
export const MAX_TEXT_BYTES = Math.min(CHUNK_LIMITS.lineBytes, CHUNK_LIMITS.values)
/** Line feeds that follow the text, so that its last block is complete and every token ends. */
export const PADDING_BYTES = 64
/**
 * Address of the text. Before it are the types of the open brackets, from OUTERMOST on. A block that is wrong may close 64
 * brackets below it. The byte before the text is a line feed.
 */
export const TEXT_AT = 2_048
const OUTERMOST = 128
const PAGE_BYTES = 64 * 1024

/** Lower limits than those of a chunk, by more than the line feeds of the padding. Above these, the exact check decides. */
const MAX_LINES = CHUNK_LIMITS.lines - PADDING_BYTES
const MAX_BLANK_LINES = CHUNK_LIMITS.blankBytes - PADDING_BYTES
const MAX_DEPTH = 1_000

/** Type of a bracket in the stack: 1 for that of an object, 0 for that of an array. This one equals neither. */
const OUTSIDE = 2

/** Shared by the steps of the check. */
interface Check {
  readonly code: FunctionCode
  /** Address of the innermost open bracket. */
  readonly top: I32
  /** Returns the bytes after those of a mask. The last one is after its block, and `before` has it for the next one. */
  after(mask: I64, before?: I64): I64
  /** Ends the check without a proof. */
  fail(): void
}

/**
 * Returns the code of the WebAssembly module whose function `check` returns 1 if the text of a length is proven to be JSON lines
 * of objects, and reads time and type of each event.
 *
 * The grammar of JSON without blanks is nearly local. A mask has a bit for each byte of a block, and a rule is a mask of the
 * bytes that may follow others: after `{` a key or `}`, after a colon a value. Only commas and closing brackets depend on what
 * is open, so a loop visits the brackets of a block. No other byte is visited alone but escapes, numbers that are not plain
 * digits, and names of members of an event.
 *
 * The result is 0 also for what is not read here, such as blanks between tokens, deep nesting and names with escapes. UTF-8 is
 * not checked.
 */
export function assembleLineCheck(): Uint8Array {
  const module = new ModuleAssembler(Math.ceil((TEXT_AT + MAX_TEXT_BYTES + PADDING_BYTES) / PAGE_BYTES))
  const events = new EventFacts(module)
  const tokens = { isEscape: addIsEscape(module), scalarEnd: addScalarEnd(module) }
  module.function('check', I32, (code, length) => {
    const fail = () => code.return(I32.of(0))
    const after: Check['after'] = (mask, before = code.variable(I64)) => {
      const following = code.let(mask.shiftLeft(1n).or(before))
      code.set(before, mask.shiftRight(63n))
      return following
    }
    events.begin(code)
    code.setByte(I32.of(OUTERMOST), 0, I32.of(OUTSIDE))
    code.setByte(I32.of(TEXT_AT - 1), 0, I32.of(0x0a))
    const check: Check = { code, top: code.let(I32.of(OUTERMOST)), after, fail }
    const inStringBefore = code.variable(I64)
    const newlineBefore = code.let(I64.of(1n))
    const newlines = code.variable(I32)
    const base = code.let(I32.of(TEXT_AT))
    const end = code.let(length.plus(TEXT_AT))
    code.while(base.lessThan(end), () => {
      const block = new TextBlock(code, base)
      const strings = findStrings(code, block, inStringBefore)
      const parts = findParts(code, block, strings)
      const nesting = followBrackets(check, parts)
      const keyOpening = checkOrder(check, { ...strings, ...parts, ...nesting }, newlineBefore)
      checkTokens(check, tokens, base, { ...strings, ...parts })
      eachBit(code, keyOpening.and(nesting.inEvent).or(nesting.eventEnds), at => {
        code.if(
          nesting.eventEnds.shiftRight(at).and(1n).hasBits(),
          () => events.end(code),
          () => events.readMember(code, code.let(base.plus(at.toI32()))),
        )
      })
      code.set(newlines, newlines.plus(parts.newline.countBits()))
      code.set(base, base.plus(BLOCK_BYTES))
    })
    code.if(events.isUnknown.or(check.top.minus(OUTERMOST)).or(inStringBefore.toI32()), fail)
    code.if(I32.of(CHUNK_LIMITS.events).lessThan(events.count), fail)
    code.if(I32.of(MAX_LINES).lessThan(newlines), fail)
    code.if(I32.of(MAX_BLANK_LINES).lessThan(newlines.minus(events.count)), fail)
    code.return(I32.of(1))
  })
  return module.toBytes()
}

/** The bytes of a block that are not in strings, and those that may not be there. */
type Parts = ReturnType<typeof findParts>

function findParts(code: FunctionCode, block: TextBlock, { quote, inString }: Strings) {
  const outside = (character: string) => code.let(block.equals(character).without(inString))
  const blank = code.let(block.blanks())
  const newline = outside('\n')
  const braceOpen = outside('{')
  const braceClose = outside('}')
  const bracketOpen = outside('[')
  const bracketClose = outside(']')
  const colon = outside(':')
  const comma = outside(',')
  const opens = code.let(braceOpen.or(bracketOpen))
  const closes = code.let(braceClose.or(bracketClose))
  const scalar = code.let(opens.or(closes).or(colon).or(comma).or(blank).or(quote).or(inString).not())
  const digit = code.let(block.digits().and(scalar))
  const zero = code.let(block.equals('0').and(scalar))
  const controlInString = blank.without(block.equals(' ')).and(inString)
  const blankOutside = blank.without(inString).xor(newline)
  const wrong = code.let(controlInString.or(blankOutside))
  return { newline, braceOpen, braceClose, bracketOpen, colon, comma, opens, closes, scalar, digit, zero, wrong }
}

/** Masks that depend on the open brackets: bytes directly in an object, bytes directly in an event, and where events end. */
type Nesting = ReturnType<typeof followBrackets>

/** Adds brackets that do not match to `wrong`. */
function followBrackets({ code, top, fail }: Check, { braceOpen, braceClose, opens, closes, wrong }: Parts) {
  const isTopOf = (address: number) => top.equals(address).toI64()
  const inObject = code.let(top.byte().toI64().fillWithLowest())
  const inEvent = code.let(isTopOf(OUTERMOST + 1).fillWithLowest())
  const eventEnds = code.let(I64.of(0n))
  eachBit(code, opens.or(closes), at => {
    const isClose = code.let(closes.shiftRight(at).and(1n))
    const isOfObject = code.let(braceOpen.or(braceClose).shiftRight(at).and(1n))
    code.set(wrong, wrong.or(isClose.fillWithLowest().and(top.byte().toI64().xor(isOfObject))))
    // A closing bracket writes above the top of the stack, where nothing is read.
    code.setByte(top, 1, isOfObject.toI32())
    code.set(top, top.plus(1).minus(isClose.plus(isClose).toI32()))
    const rest = code.let(I64.of(-1n).shiftLeft(at))
    const fillFrom = (mask: I64, bit: I64) =>
      code.set(mask, mask.xor(mask.shiftRight(at).xor(bit).fillWithLowest().and(rest)))
    fillFrom(inObject, top.byte().toI64())
    fillFrom(inEvent, isTopOf(OUTERMOST + 1))
    code.set(eventEnds, eventEnds.or(isClose.and(isTopOf(OUTERMOST)).shiftLeft(at)))
  })
  code.if(
    top
      .minus(OUTERMOST)
      .below(MAX_DEPTH + 1)
      .isZero(),
    fail,
  )
  return { inObject, inEvent, eventEnds }
}

/** Checks which bytes follow which, and returns the opening quotes of keys. */
function checkOrder(check: Check, masks: Strings & Parts & Nesting, newlineBefore: I64): I64 {
  const { code, after } = check
  const { inString, opening, closing, newline, braceOpen, braceClose, bracketOpen, colon, comma, opens, closes } = masks
  const { scalar, digit, zero, inObject, eventEnds, wrong } = masks
  const refuse = (bytes: I64) => code.set(wrong, wrong.or(bytes))
  const firstOfObject = after(braceOpen)
  const nextMember = after(code.let(comma.and(inObject)))
  const keyOpening = code.let(opening.and(firstOfObject.or(nextMember)))
  // The bit of an opening quote carries through the bits of its string to the closing quote.
  const inKeyBefore = code.variable(I64)
  const carried = code.let(inString.plus(keyOpening.or(inKeyBefore)))
  code.set(inKeyBefore, carried.below(inString).toI64())
  const keyClosing = code.let(carried.without(inString).and(closing))
  const begins = code.let(opening.or(scalar).or(opens))
  const ends = code.let(closing.without(keyClosing).or(closes.without(eventEnds)))
  const afterScalar = after(scalar)
  refuse(firstOfObject.without(opening.or(braceClose)))
  refuse(nextMember.without(opening))
  refuse(after(bracketOpen).without(begins.or(closes)))
  refuse(after(code.let(colon.or(comma.without(inObject)))).without(begins))
  refuse(after(keyClosing).xor(colon))
  refuse(after(ends).without(comma.or(closes)))
  refuse(afterScalar.without(scalar.or(comma).or(closes)))
  refuse(after(eventEnds).without(newline))
  refuse(after(newline, newlineBefore).without(newline.or(braceOpen)))
  const leadingZero = code.let(zero.without(afterScalar))
  refuse(after(leadingZero).and(digit))
  code.if(wrong.hasBits(), check.fail)
  return keyOpening
}

/** The functions of the module that read one token. */
interface TokenFunctions {
  isEscape(at: I32): I32
  scalarEnd(inside: I32): I32
}

/** Checks escapes, literals, and numbers that are not digits alone. */
function checkTokens(
  { code, fail }: Check,
  { isEscape, scalarEnd }: TokenFunctions,
  base: I32,
  { escaped, inString, scalar, digit }: Strings & Parts,
): void {
  eachBit(code, escaped.and(inString), at => code.if(isEscape(base.plus(at.toI32())).isZero(), fail))
  const rest = code.let(scalar.without(digit))
  code.while(rest.hasBits(), () => {
    const end = code.let(scalarEnd(base.plus(rest.lowestBit().toI32())))
    code.if(end.isZero(), fail)
    const read = code.let(end.minus(base))
    code.if(
      read.lessThan(BLOCK_BYTES),
      () => code.set(rest, rest.and(I64.of(-1n).shiftLeft(read.toI64()))),
      () => code.set(rest, I64.of(0n)),
    )
  })
}
