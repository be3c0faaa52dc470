import type { Signal } from '../../schemas/queues/names.ts'
import { findRenewable, type RenewableFields, renew } from '../load/renewal.ts'

const MARK = /~\d{7}/g
const MARK_CHARACTERS = 8

/** Returns a text that `Template` replaces by eight hexadecimal digits: those of the value with this number. */
export const valueMark = (number: number) => `~${String(number).padStart(MARK_CHARACTERS - 1, '0')}`

/** Returns the text of a value. */
export const valueText = (value: number) => (value >>> 0).toString(16).padStart(MARK_CHARACTERS, '0')

/** Mixes two numbers to one of 32 bits that looks random. */
export function mix(a: number, b: number): number {
  let mixed = Math.imul(a ^ Math.imul(b, 0x9e3779b1), 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return (mixed ^ (mixed >>> 16)) >>> 0
}

/** Returns an id after `renew`, in hexadecimal. */
export function renewedId(id: Buffer, change: number): string {
  const renewed = Buffer.from(id)
  renewed.writeInt32LE(id.readInt32LE() ^ change)
  return renewed.toString('hex')
}

const HEX_OF_BYTE = Uint16Array.from({ length: 256 }, (_, byte) =>
  Buffer.from(byte.toString(16).padStart(2, '0')).readUInt16LE(),
)

/** A body that is taken many times, each time with other ids, times and values. That takes a hundredth of building one. */
export class Template {
  readonly #body: Buffer
  readonly #fields: RenewableFields
  readonly #marks: readonly { readonly at: number; readonly number: number }[]
  #change = 0

  constructor(signal: Signal, body: Buffer) {
    this.#body = body
    this.#fields = findRenewable(signal, body)
    this.#marks = [...body.toString('latin1').matchAll(MARK)].map(({ index, 0: mark }) => ({
      at: index,
      number: Number(mark.slice(1)),
    }))
  }

  /**
   * Returns the body, until it is taken again. Its ids are those that it was built with, changed by `change`; its first time is
   * `firstMs`; its values are those of `valueFor`, of 32 bits.
   */
  take(change: number, firstMs: number, valueFor: (number: number) => number): Buffer {
    renew(this.#body, this.#fields, change ^ this.#change, firstMs)
    this.#change = change
    for (const { at, number } of this.#marks) writeHex(this.#body, at, valueFor(number))
    return this.#body
  }
}

function writeHex(bytes: Buffer, at: number, value: number): void {
  for (let i = 0; i < 4; i++) bytes.writeUInt16LE(HEX_OF_BYTE[(value >>> (24 - 8 * i)) & 0xff] as number, at + 2 * i)
}
