/** The parts of a response head that the load generator uses. */
export interface ResponseHead {
  readonly status: number
  readonly contentLength: number
  readonly closes: boolean
  /** Undefined if the header is absent or not a number of seconds. */
  readonly retryAfterSeconds: number | undefined
}

/** Reports a response that this reader cannot parse. The connection must be closed. */
class UnreadableResponseError extends Error {
  override readonly name = 'UnreadableResponseError'
}

const HEAD_END = Buffer.from('\r\n\r\n')
const NO_BYTES = Buffer.alloc(0)

/**
 * Finds HTTP/1.1 responses in the bytes of a connection by status line, content-length and retry-after. A server under
 * load repeats its response, so a chunk that equals the last response byte for byte is not parsed again.
 */
export class ResponseReader {
  readonly #onResponse: (head: ResponseHead) => void
  #pending = NO_BYTES
  #known: { bytes: Buffer; head: ResponseHead } | undefined

  constructor(onResponse: (head: ResponseHead) => void) {
    this.#onResponse = onResponse
  }

  /** Parses the next bytes. Copies the bytes that it keeps, so the caller can reuse its buffer. */
  read(chunk: Buffer): void {
    const known = this.#known
    if (known && this.#pending.length === 0 && known.bytes.equals(chunk)) {
      this.#onResponse(known.head)
      return
    }
    let bytes = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk])
    for (;;) {
      const headLength = bytes.indexOf(HEAD_END)
      if (headLength < 0) break
      const head = parseHead(bytes.toString('latin1', 0, headLength))
      const length = headLength + HEAD_END.length + head.contentLength
      if (bytes.length < length) break
      this.#known = { bytes: Buffer.from(bytes.subarray(0, length)), head }
      bytes = bytes.subarray(length)
      this.#onResponse(head)
    }
    this.#pending = bytes.length === 0 ? NO_BYTES : Buffer.from(bytes)
  }
}

function parseHead(text: string): ResponseHead {
  const status = Number(/^HTTP\/1\.1 (\d{3})(?: |$)/.exec(text)?.[1])
  if (!(status >= 200)) throw new UnreadableResponseError(`not the head of a final response: ${text.slice(0, 80)}`)
  const contentLength = headerOf(text, 'content-length') ?? (status === 204 ? '0' : undefined)
  if (contentLength === undefined || !/^\d+$/.test(contentLength)) {
    throw new UnreadableResponseError(`a ${status} response without a content-length`)
  }
  const retryAfter = headerOf(text, 'retry-after')
  return {
    status,
    contentLength: Number(contentLength),
    closes: headerOf(text, 'connection')?.toLowerCase() === 'close',
    retryAfterSeconds: retryAfter !== undefined && /^\d+$/.test(retryAfter) ? Number(retryAfter) : undefined,
  }
}

function headerOf(head: string, name: string): string | undefined {
  return new RegExp(`\\r\\n${name}: *([^\\r\\n]*?) *(?:\\r\\n|$)`, 'i').exec(head)?.[1]
}
