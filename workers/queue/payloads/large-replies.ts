/** Strings of at least this size are taken out. Replies to the handshake, INFO among them, and small payloads are below. */
export const LARGE_BYTES = 32 * 1024
const READ_BYTES = 64 * 1024
const CRLF_BYTES = 2
const NEWLINE = 0x0a

/** Receivers of the large strings and of the rest of the stream. */
export interface LargeRepliesDeps {
  /** Returns memory of this length for a large string. */
  take(length: number): Buffer
  /** Keeps a complete large string. Returns the number that replaces it in the replies. */
  keep(value: Buffer): number
  /** Passes on replies without their large strings. The receiver owns the bytes. */
  forward(bytes: Buffer): void
}

/**
 * Takes large bulk strings out of the stream of Redis' replies (RESP 2 and 3) and leaves an integer in their place:
 *
 *   $2345678 CRLF <bytes> CRLF   becomes   :7 CRLF
 *
 * The socket writes the bytes of a large string directly into its final buffer. ioredis would receive them in chunks of
 * 64 KiB, each an allocation, and join them in another.
 */
export class LargeReplies {
  readonly #deps: LargeRepliesDeps
  readonly #chunk = Buffer.allocUnsafeSlow(READ_BYTES)
  /** The large string that is being read, and how many of its bytes have arrived. */
  #value: Buffer | undefined
  #filled = 0
  /** Bytes left of a small string that is passed on, including its CRLF. */
  #restBytes = 0
  /** The beginning of an incomplete line, which may announce a large string. */
  #heldLine = ''

  constructor(deps: LargeRepliesDeps) {
    this.#deps = deps
  }

  /** Returns the buffer into which the socket must read next. */
  target(): Buffer {
    return this.#value === undefined ? this.#chunk : this.#value.subarray(this.#filled)
  }

  /** Processes the bytes that the socket has written to the target. */
  received(length: number): void {
    if (this.#value === undefined) this.#scan(this.#chunk.subarray(0, length))
    else this.#fill(this.#value, length)
  }

  #scan(chunk: Buffer): void {
    let passed = 0
    for (let at = 0; at < chunk.length; ) {
      if (this.#restBytes > 0) {
        const length = Math.min(this.#restBytes, chunk.length - at)
        this.#restBytes -= length
        at += length
        continue
      }
      const newline = chunk.indexOf(NEWLINE, at)
      const end = newline < 0 ? chunk.length : newline + 1
      const held = this.#heldLine
      const line = held + chunk.toString('latin1', at, end)
      const length = newline < 0 ? 0 : stringLength(line)
      if (newline < 0 || length >= LARGE_BYTES) {
        this.#pass(chunk.subarray(passed, at))
        passed = end
      } else if (held !== '') {
        this.#pass(Buffer.from(held, 'latin1'))
      }
      this.#heldLine = newline < 0 ? line : ''
      at = end
      if (length >= LARGE_BYTES) at = passed = end + this.#begin(length, chunk.subarray(end))
      else if (length >= 0 && newline >= 0) this.#restBytes = length + CRLF_BYTES
    }
    this.#pass(chunk.subarray(passed))
  }

  /** Starts a large string. Returns how many of its bytes were in the same chunk as its length. */
  #begin(length: number, bytes: Buffer): number {
    const value = this.#deps.take(length)
    const there = bytes.copy(value)
    this.#value = value
    this.#filled = 0
    this.#fill(value, there)
    return there
  }

  #fill(value: Buffer, length: number): void {
    this.#filled += length
    if (this.#filled < value.length) return
    this.#value = undefined
    this.#restBytes = CRLF_BYTES // ends the line of the integer
    this.#pass(Buffer.from(`:${this.#deps.keep(value)}`))
  }

  #pass(bytes: Buffer): void {
    if (bytes.length > 0) this.#deps.forward(Buffer.from(bytes))
  }
}

/** Returns the length of the string, verbatim string or error that a line announces, or -1 if it announces none. */
function stringLength(line: string): number {
  const type = line[0]
  return type === '$' || type === '=' || type === '!' ? Number.parseInt(line.slice(1), 10) : -1
}
