import { connect, type Socket } from 'node:net'
import type { PreparedRequest } from './requests.ts'
import { type ResponseHead, ResponseReader } from './response-reader.ts'

/** Callbacks of a connection. */
export interface ConnectionEvents {
  /** Called when the connection can take a request: it is new, or its last request has its response. */
  onFree(connection: LoadConnection): void
  /** Returns the milliseconds to wait before the connection is free. */
  onAnswer(connection: LoadConnection, head: ResponseHead): number
  /** Called with an error code when a request was lost with its connection. A new connection is being opened. */
  onFault(connection: LoadConnection, code: string): void
}

const RECONNECT_AFTER_MS = 20
const READ_BUFFER_BYTES = 64 * 1024

/** Keeps one connection alive with at most one request in flight. Reopens it when it is lost. */
export class LoadConnection {
  readonly #port: number
  readonly #events: ConnectionEvents
  readonly #buffer = Buffer.allocUnsafe(READ_BUFFER_BYTES)
  #socket: Socket | undefined
  #closing = false
  /** Requests that only this connection sends, in turn. No request changes while it is in flight. */
  readonly requests: readonly PreparedRequest[]
  #next = 0
  inFlight = false
  /** Time at which the request in flight was due, by `performance.now()`. */
  dueAt = 0

  constructor(port: number, requests: readonly PreparedRequest[], events: ConnectionEvents) {
    this.#port = port
    this.requests = requests
    this.#events = events
    this.#open()
  }

  get isOpen(): boolean {
    return this.#socket?.readyState === 'open'
  }

  takeRequest(): PreparedRequest {
    const request = this.requests[this.#next] as PreparedRequest
    this.#next = (this.#next + 1) % this.requests.length
    return request
  }

  send(request: PreparedRequest, dueAt: number): void {
    this.inFlight = true
    this.dueAt = dueAt
    this.#socket?.write(request.bytes)
  }

  close(): void {
    this.#closing = true
    this.#socket?.destroy()
  }

  #open(): void {
    const reader = new ResponseReader(head => this.#answered(head))
    // Reading into one fixed buffer avoids the bookkeeping of a stream and a new buffer per read.
    const onread = {
      buffer: this.#buffer,
      callback: (size: number) => {
        try {
          reader.read(this.#buffer.subarray(0, size))
        } catch (error) {
          socket.destroy(error as Error)
        }
        return true
      },
    }
    const socket = connect({ host: '127.0.0.1', port: this.#port, noDelay: true, onread })
    this.#socket = socket
    let code = 'CLOSED'
    socket.on('connect', () => this.#events.onFree(this))
    socket.on('error', (error: NodeJS.ErrnoException) => {
      code = error.code ?? error.name
    })
    socket.on('close', () => this.#lost(code))
  }

  #answered(head: ResponseHead): void {
    if (!this.inFlight) {
      this.#socket?.destroy(new Error('a response without a request'))
      return
    }
    this.inFlight = false
    const waitMs = this.#events.onAnswer(this, head)
    if (head.closes) this.#socket?.destroy()
    else if (waitMs === 0) this.#events.onFree(this)
    else setTimeout(() => this.#events.onFree(this), waitMs).unref()
  }

  #lost(code: string): void {
    if (this.#closing) return
    const wasInFlight = this.inFlight
    this.inFlight = false
    if (wasInFlight || code !== 'CLOSED') this.#events.onFault(this, code)
    setTimeout(() => {
      if (!this.#closing) this.#open()
    }, RECONNECT_AFTER_MS)
  }
}
