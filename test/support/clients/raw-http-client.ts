/** An HTTP client for tests that sends any bytes and hides nothing of the responses. */
import { connect, type Socket } from 'node:net'
import { until } from '../until.ts'

/** Connections of these tests respond within milliseconds. */
const POLL = { everyMs: 2 }

/** One parsed response. */
interface RawResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** One TCP connection on which a test sends any bytes. */
export class RawConnection {
  readonly socket: Socket
  received = ''
  closed = false
  error: string | undefined

  constructor(port: number) {
    this.socket = connect(port, '127.0.0.1')
    this.socket.on('data', chunk => {
      this.received += chunk.toString('latin1')
    })
    this.socket.on('error', (error: NodeJS.ErrnoException) => {
      this.error = error.code
    })
    this.socket.on('close', () => {
      this.closed = true
    })
  }

  send(bytes: string | Uint8Array): this {
    this.socket.write(bytes)
    return this
  }

  /** Returns the first `count` responses when they are complete. */
  async responses(count: number): Promise<RawResponse[]> {
    await until(`${count} responses`, () => parseResponses(this.received).length >= count || this.closed, POLL)
    return parseResponses(this.received)
  }

  async response(): Promise<RawResponse> {
    const [response] = await this.responses(1)
    if (!response) throw new Error(`the connection closed (${this.error ?? 'in order'}) after: ${this.received}`)
    return response
  }

  async end(): Promise<void> {
    await until('the connection is closed', () => this.closed, POLL)
  }
}

/** Sends one request on a new connection. */
export async function request(port: number, bytes: string | Uint8Array): Promise<RawResponse> {
  const connection = new RawConnection(port).send(bytes)
  try {
    return await connection.response()
  } finally {
    connection.socket.destroy()
  }
}

/** Returns the text of a request; a body gets its content-length. */
export function rawRequest(
  method: string,
  target: string,
  headers: Record<string, string> = {},
  body?: string,
): string {
  const all = {
    host: 'test',
    ...headers,
    ...(body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return `${method} ${target} HTTP/1.1\r\n${lines.join('')}\r\n${body ?? ''}`
}

/** Returns the complete final responses at the start of a text. */
function parseResponses(text: string): RawResponse[] {
  const responses: RawResponse[] = []
  let rest = text
  for (;;) {
    const headEnd = rest.indexOf('\r\n\r\n')
    if (headEnd === -1) return responses
    const [statusLine = '', ...lines] = rest.slice(0, headEnd).split('\r\n')
    const status = Number(statusLine.split(' ')[1])
    const headers = Object.fromEntries(lines.map(line => splitHeader(line)))
    rest = rest.slice(headEnd + 4)
    if (status < 200) continue
    const body = takeBody(rest, headers)
    if (!body) return responses
    responses.push({ status, headers, body: body.text })
    rest = rest.slice(body.length)
  }
}

function splitHeader(line: string): [string, string] {
  const colon = line.indexOf(':')
  return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
}

function takeBody(rest: string, headers: Record<string, string>): { text: string; length: number } | undefined {
  if (headers['transfer-encoding'] !== 'chunked') {
    const length = Number(headers['content-length'] ?? 0)
    return rest.length >= length ? { text: rest.slice(0, length), length } : undefined
  }
  let text = ''
  let at = 0
  for (;;) {
    const sizeEnd = rest.indexOf('\r\n', at)
    if (sizeEnd === -1) return undefined
    const size = Number.parseInt(rest.slice(at, sizeEnd), 16)
    const next = sizeEnd + 2 + size + 2
    if (rest.length < next) return undefined
    text += rest.slice(sizeEnd + 2, sizeEnd + 2 + size)
    at = next
    if (size === 0) return { text, length: at }
  }
}
