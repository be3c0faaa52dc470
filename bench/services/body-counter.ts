import { connect, type Socket } from 'node:net'

const READ_BUFFER_BYTES = 64 * 1024
const HEAD_END = '\r\n\r\n'

/**
 * A client that counts the bytes of bodies, over one connection that it keeps. It reads all of them into the same buffer. When it
 * kept them as texts, this process collected its heap after every twenty-fifth body of half a megabyte, and a p99 of 1.5 times
 * the p50 became one of four times.
 */
export class BodyCounter {
  readonly #port: number
  readonly #timeoutMs: number
  #socket: Socket | undefined
  #onChunk: (chunk: Buffer) => void = () => {}
  #onFault: (error: Error) => void = () => {}

  constructor(port: number, timeoutMs: number) {
    this.#port = port
    this.#timeoutMs = timeoutMs
  }

  /** Sends a GET and returns the bytes of the body. Throws unless the status is 200 and the body ends in time. */
  async count(path: string, bearer: string): Promise<number> {
    const socket = this.#connected()
    const { promise, resolve, reject } = Promise.withResolvers<number>()
    const timer = setTimeout(() => this.#fail(new Error(`no answer to ${path} in time`)), this.#timeoutMs)
    let bytesLeft: number | undefined
    let bytes = 0
    this.#onFault = reject
    this.#onChunk = chunk => {
      if (bytesLeft === undefined) {
        // A head is smaller than the first chunk.
        const headEnd = chunk.indexOf(HEAD_END)
        const head = chunk.toString('latin1', 0, headEnd)
        bytes = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1])
        if (!head.startsWith('HTTP/1.1 200 ') || !(bytes >= 0)) {
          this.#fail(new Error(`unexpected answer to ${path}: ${head.slice(0, 200)}`))
          return
        }
        bytesLeft = bytes + headEnd + HEAD_END.length
      }
      bytesLeft -= chunk.length
      if (bytesLeft === 0) resolve(bytes)
    }
    socket.write(`GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${bearer}\r\n\r\n`)
    return promise.finally(() => clearTimeout(timer))
  }

  close(): void {
    this.#socket?.destroy()
  }

  #connected(): Socket {
    if (this.#socket?.destroyed === false) return this.#socket
    const buffer = Buffer.allocUnsafe(READ_BUFFER_BYTES)
    const callback = (size: number) => {
      this.#onChunk(buffer.subarray(0, size))
      return true
    }
    const socket = connect({ host: '127.0.0.1', port: this.#port, noDelay: true, onread: { buffer, callback } })
    this.#socket = socket
    const failIfUsed = (error: Error) => {
      if (this.#socket === socket) this.#fail(error)
    }
    socket.on('error', failIfUsed)
    socket.on('close', () => failIfUsed(new Error('the API has closed the connection')))
    return socket
  }

  #fail(error: Error): void {
    this.#socket?.destroy()
    this.#onFault(error)
  }
}
