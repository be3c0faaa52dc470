import { randomInt } from 'node:crypto'

const FREE = -1
/** Clients choose most of a key. Without it, they could choose keys that all have one slot. */
const SEED = randomInt(2 ** 32)

/**
 * Numbers the keys of a batch in the order in which they first appear. A key is four integers of 32 bits. A look-up takes 10 ns,
 * a Map with texts of the same integers takes 150.
 */
export class KeyNumbers {
  length = 0
  #slots = new Int32Array(256).fill(FREE)
  #keys = new Int32Array(4 * 128)

  /** Returns the number of a key, or -1. */
  find(a: number, b: number, c: number, d: number): number {
    return this.#slots[this.#slotOf(a, b, c, d)] as number
  }

  /** Gives a new key its number. */
  add(a: number, b: number, c: number, d: number): number {
    if (this.length === this.#keys.length / 4) this.#grow()
    const number = this.length++
    this.#slots[this.#slotOf(a, b, c, d)] = number
    const at = 4 * number
    this.#keys[at] = a
    this.#keys[at + 1] = b
    this.#keys[at + 2] = c
    this.#keys[at + 3] = d
    return number
  }

  /** Returns an integer of a key. */
  part(number: number, index: 0 | 1 | 2 | 3): number {
    return this.#keys[4 * number + index] as number
  }

  /** Returns the slot of the key, or the free one where it belongs. */
  #slotOf(a: number, b: number, c: number, d: number): number {
    const slots = this.#slots
    const keys = this.#keys
    const mask = slots.length - 1
    for (let slot = hashOf(a, b, c, d) & mask; ; slot = (slot + 1) & mask) {
      const number = slots[slot] as number
      if (number === FREE) return slot
      const at = 4 * number
      if (keys[at] === a && keys[at + 1] === b && keys[at + 2] === c && keys[at + 3] === d) return slot
    }
  }

  #grow(): void {
    const keys = new Int32Array(2 * this.#keys.length)
    keys.set(this.#keys)
    this.#keys = keys
    this.#slots = new Int32Array(2 * this.#slots.length).fill(FREE)
    for (let number = 0; number < this.length; number++) {
      const slot = this.#slotOf(this.part(number, 0), this.part(number, 1), this.part(number, 2), this.part(number, 3))
      this.#slots[slot] = number
    }
  }
}

function hashOf(a: number, b: number, c: number, d: number): number {
  let hash = Math.imul(a ^ SEED, 0x9e37_79b1) ^ Math.imul(b, 0x85eb_ca6b)
  hash = Math.imul(hash ^ (hash >>> 15) ^ c, 0xc2b2_ae35)
  hash = Math.imul(hash ^ (hash >>> 13) ^ d, 0x27d4_eb2f)
  return hash ^ (hash >>> 16)
}
