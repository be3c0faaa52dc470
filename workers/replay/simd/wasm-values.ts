/** Instructions that leave one value on the stack of WebAssembly. Methods append the instruction that uses it. */
export abstract class Value {
  readonly code: readonly number[]

  constructor(code: readonly number[]) {
    this.code = code
  }
}

/** A type of values: its class, and its byte in a module. */
export interface ValueType<T extends Value> {
  new (code: readonly number[]): T
  readonly type: number
}

/** Returns a signed number as LEB128. */
function signed(value: bigint): number[] {
  const low = Number(BigInt.asUintN(7, value))
  const rest = value >> 7n
  const isLast = rest === (low & 0x40 ? -1n : 0n)
  return isLast ? [low] : [low | 0x80, ...signed(rest)]
}

/** Returns a number that is not negative as LEB128. */
export function unsigned(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...unsigned(value >>> 7)]
}

/** Joins the code of operands with the instruction that takes them, and its immediates. */
function apply(operands: readonly Value[], ...instruction: readonly number[]): number[] {
  return [...operands.flatMap(({ code }) => code), ...instruction]
}

/** Alignment of a load. It is only a hint, and 1 is always right. */
const UNALIGNED = 0

/** A number of 32 bits: an address, a byte or a count. Comparisons return 1 or 0. */
export class I32 extends Value {
  static readonly type = 0x7f

  static of(value: number): I32 {
    return new I32([0x41, ...signed(BigInt(value))])
  }

  equals(other: I32 | string | number): I32 {
    return this.#with(0x46, other)
  }

  /** Both are signed. */
  lessThan(other: I32 | number): I32 {
    return this.#with(0x48, other)
  }

  /** Both are unsigned, so a negative number is not below. */
  below(other: I32 | number): I32 {
    return this.#with(0x49, other)
  }

  plus(other: I32 | number): I32 {
    return this.#with(0x6a, other)
  }

  minus(other: I32 | number): I32 {
    return this.#with(0x6b, other)
  }

  and(other: I32 | number): I32 {
    return this.#with(0x71, other)
  }

  or(other: I32 | number): I32 {
    return this.#with(0x72, other)
  }

  isZero(): I32 {
    return new I32(apply([this], 0x45))
  }

  /** The number without a sign. */
  toI64(): I64 {
    return new I64(apply([this], 0xad))
  }

  /** The byte at this address. */
  byte(offset = 0): I32 {
    return new I32(apply([this], 0x2d, UNALIGNED, ...unsigned(offset)))
  }

  /** The four bytes at this address. */
  bytes4(offset = 0): I32 {
    return new I32(apply([this], 0x28, UNALIGNED, ...unsigned(offset)))
  }

  /** The eight bytes at this address. */
  bytes8(offset = 0): I64 {
    return new I64(apply([this], 0x29, UNALIGNED, ...unsigned(offset)))
  }

  /** The sixteen bytes at this address. */
  bytes16(offset = 0): V128 {
    return new V128(apply([this], 0xfd, 0x00, UNALIGNED, ...unsigned(offset)))
  }

  /** A text of one character means its code. */
  #with(opcode: number, other: I32 | string | number): I32 {
    const number = typeof other === 'string' ? other.charCodeAt(0) : other
    return new I32(apply([this, typeof number === 'number' ? I32.of(number) : number], opcode))
  }
}

/** A number or a mask of 64 bits. */
export class I64 extends Value {
  static readonly type = 0x7e

  static of(value: bigint): I64 {
    return new I64([0x42, ...signed(BigInt.asIntN(64, value))])
  }

  equals(other: I64): I32 {
    return new I32(apply([this, other], 0x51))
  }

  below(other: I64): I32 {
    return new I32(apply([this, other], 0x54))
  }

  plus(other: I64 | bigint): I64 {
    return this.#with(0x7c, other)
  }

  minus(other: I64 | bigint): I64 {
    return this.#with(0x7d, other)
  }

  times(other: bigint): I64 {
    return this.#with(0x7e, other)
  }

  and(other: I64 | bigint): I64 {
    return this.#with(0x83, other)
  }

  or(other: I64): I64 {
    return this.#with(0x84, other)
  }

  xor(other: I64 | bigint): I64 {
    return this.#with(0x85, other)
  }

  not(): I64 {
    return this.xor(-1n)
  }

  /** The bits that the other mask does not have. */
  without(other: I64): I64 {
    return this.and(other.not())
  }

  shiftLeft(bits: I64 | bigint): I64 {
    return this.#with(0x86, bits)
  }

  shiftRight(bits: I64 | bigint): I64 {
    return this.#with(0x88, bits)
  }

  /** All bits are as the highest one is. */
  fillWithHighest(): I64 {
    return this.#with(0x87, 63n)
  }

  /** All bits are as the lowest one is. */
  fillWithLowest(): I64 {
    return I64.of(0n).minus(this.and(1n))
  }

  hasBits(): I32 {
    return new I32(apply([this, I64.of(0n)], 0x52))
  }

  /** Position of the lowest bit. */
  lowestBit(): I64 {
    return new I64(apply([this], 0x7a))
  }

  countBits(): I32 {
    return new I64(apply([this], 0x7b)).toI32()
  }

  /** The lower half. */
  toI32(): I32 {
    return new I32(apply([this], 0xa7))
  }

  /** The signed number as a fraction. */
  toF64(): F64 {
    return new F64(apply([this], 0xb9))
  }

  #with(opcode: number, other: I64 | bigint): I64 {
    return new I64(apply([this, typeof other === 'bigint' ? I64.of(other) : other], opcode))
  }
}

/** A number as JavaScript has it. */
export class F64 extends Value {
  static readonly type = 0x7c

  static of(value: number): F64 {
    return new F64([0x44, ...new Uint8Array(Float64Array.of(value).buffer)])
  }

  equals(other: number): I32 {
    return new I32(apply([this, F64.of(other)], 0x61))
  }

  atMost(other: number): I32 {
    return new I32(apply([this, F64.of(other)], 0x65))
  }

  absolute(): F64 {
    return new F64(apply([this], 0x99))
  }

  negative(): F64 {
    return new F64(apply([this], 0x9a))
  }

  times(other: number): F64 {
    return new F64(apply([this, F64.of(other)], 0xa2))
  }

  dividedBy(other: F64): F64 {
    return new F64(apply([this, other], 0xa3))
  }

  lesser(other: F64): F64 {
    return new F64(apply([this, other], 0xa4))
  }

  greater(other: F64): F64 {
    return new F64(apply([this, other], 0xa5))
  }
}

/** Sixteen bytes. A comparison makes each byte that fulfils it 255, and the others 0. */
export class V128 extends Value {
  static readonly type = 0x7b

  /** Sixteen times the same byte. */
  static of(byte: number): V128 {
    return new V128([0xfd, 0x0c, ...new Array<number>(16).fill(byte)])
  }

  equals(byte: number): V128 {
    return this.#with(0x23, byte)
  }

  atMost(byte: number): V128 {
    return this.#with(0x2a, byte)
  }

  minus(byte: number): V128 {
    return this.#with(0x71, byte)
  }

  /** The highest bit of each byte. */
  toBits(): I32 {
    return new I32(apply([this], 0xfd, 0x64))
  }

  #with(opcode: number, byte: number): V128 {
    return new V128(apply([this, V128.of(byte)], 0xfd, opcode))
  }
}
