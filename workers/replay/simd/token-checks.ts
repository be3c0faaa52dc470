import type { FunctionCode, ModuleAssembler } from './wasm-module.ts'
import { F64, I32, I64 } from './wasm-values.ts'

/** An integer of 15 digits is exact in a double. */
const MAX_DIGITS = 15

const isDigit = (byte: I32) => byte.minus(0x30).below(10)
const isHexDigit = (byte: I32) => isDigit(byte).or(byte.or(0x20).minus(0x61).below(6))
const any = (conditions: readonly I32[]) => conditions.reduce((all, one) => all.or(one))
const toInteger = (text: string) => Buffer.from(text).readInt32LE()

/** Whether a byte is none of those that surround numbers and literals. */
function isOfScalar(byte: I32): I32 {
  const ends = [',', ':', '"'].map(character => byte.equals(character))
  // With this bit, `[` is `{` and `]` is `}`.
  const brackets = ['{', '}'].map(character => byte.or(0x20).equals(character))
  return any([byte.below(0x21), ...ends, ...brackets]).isZero()
}

/** Adds the function that returns whether the character after a backslash, at this address, makes an escape. */
export function addIsEscape(module: ModuleAssembler) {
  return module.function('isEscape', I32, (code, at) => {
    const character = code.let(at.byte())
    code.if(any([...'"\\/bfnrt'].map(one => character.equals(one))), () => code.return(I32.of(1)))
    const areHexDigits = [1, 2, 3, 4].map(offset => isHexDigit(code.let(at.byte(offset))))
    code.return(areHexDigits.reduce((all, one) => all.and(one), character.equals('u')))
  })
}

/** Adds the function that returns the address after the number or literal that contains this address, or 0 if it is neither. */
export function addScalarEnd(module: ModuleAssembler) {
  const numberEnd = addNumberEnd(module)
  return module.function('scalarEnd', I32, (code, inside) => {
    const start = code.let(inside)
    const before = code.let(start.minus(1).byte())
    code.while(isOfScalar(before), () => {
      code.set(start, start.minus(1))
      code.set(before, start.minus(1).byte())
    })
    const end = code.let(numberEnd(start))
    const word = code.let(start.bytes4())
    code.if(word.equals(toInteger('true')).or(word.equals(toInteger('null'))), () => code.set(end, start.plus(4)))
    code.if(word.equals(toInteger('fals')).and(start.byte(4).equals('e')), () => code.set(end, start.plus(5)))
    const next = code.let(end.byte())
    code.if(isOfScalar(next), () => code.return(I32.of(0)))
    code.return(end)
  })
}

/** Adds the function that returns the address after the number (RFC 8259) at this address, or 0 if none begins here. */
function addNumberEnd(module: ModuleAssembler) {
  const digitsEnd = addDigitsEnd(module)
  return module.function('numberEnd', I32, (code, start) => {
    const at = code.let(start)
    code.if(at.byte().equals('-'), () => code.set(at, at.plus(1)))
    code.if(
      at.byte().equals('0'),
      () => code.set(at, at.plus(1)),
      () => code.set(at, digitsEnd(at)),
    )
    // From here on, an address of 0 stays 0: the byte there is 0.
    code.if(at.byte().equals('.'), () => code.set(at, digitsEnd(at.plus(1))))
    code.if(at.byte().or(0x20).equals('e'), () => {
      code.set(at, at.plus(1))
      const sign = code.let(at.byte())
      code.set(at, at.plus(sign.equals('+').or(sign.equals('-'))))
      code.set(at, digitsEnd(at))
    })
    code.return(at)
  })
}

/** Adds the function that returns the address after the digits at this address, or 0 if there are none. */
function addDigitsEnd(module: ModuleAssembler) {
  return module.function('digitsEnd', I32, (code, start) => {
    const at = code.let(start)
    code.while(isDigit(at.byte()), () => code.set(at, at.plus(1)))
    code.if(at.equals(start), () => code.return(I32.of(0)))
    code.return(at)
  })
}

/**
 * Adds the function that returns the number at this address, exactly, or NaN if there is another value. It sets `isUnknown` at
 * numbers with more digits or an exponent.
 */
export function addReadNumber(module: ModuleAssembler, isUnknown: I32) {
  return module.function('readNumber', F64, (code, start) => {
    const isNegative = code.let(start.byte().equals('-'))
    const at = code.let(start.plus(isNegative))
    code.if(isDigit(at.byte()).isZero(), () => code.return(F64.of(Number.NaN)))
    const value = code.variable(I64)
    const count = code.variable(I32)
    const scale = code.let(F64.of(1))
    const readDigits = (alsoEach = () => {}) => {
      code.while(isDigit(at.byte()), () => {
        code.set(value, value.times(10n).plus(at.byte().minus(0x30).toI64()))
        code.set(count, count.plus(1))
        code.set(at, at.plus(1))
        alsoEach()
      })
    }
    readDigits()
    code.if(at.byte().equals('.'), () => {
      code.set(at, at.plus(1))
      readDigits(() => code.set(scale, scale.times(10)))
    })
    code.if(I32.of(MAX_DIGITS).lessThan(count).or(at.byte().or(0x20).equals('e')), () => {
      code.set(isUnknown, I32.of(1))
      code.return(F64.of(Number.NaN))
    })
    // Both are exact, so the quotient is rounded once, as the number in the text is.
    const number = code.let(value.toF64().dividedBy(scale))
    code.if(isNegative, () => code.return(number.negative()))
    code.return(number)
  })
}

/** Sets `isUnknown` if the name that begins with the quote at this address contains an escape. */
export function findEscapeInName(code: FunctionCode, quote: I32, isUnknown: I32): void {
  const at = code.let(quote.plus(1))
  const byte = code.let(at.byte())
  // A string that does not end is followed by line feeds.
  code.while(byte.equals('"').or(byte.equals('\n')).isZero(), () => {
    code.set(isUnknown, isUnknown.or(byte.equals('\\')))
    code.set(at, at.plus(1))
    code.set(byte, at.byte())
  })
}
