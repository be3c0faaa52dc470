import { connect } from 'node:net'
import { mutatePayload } from '../payloads/mutate-payload.ts'
import type { Random } from '../payloads/scramble-message.ts'
import type { FuzzRequest } from './fuzz-queries.ts'
import { pick } from './fuzz-run.ts'

/** How long a client waits for a response before it ends its side of the connection. */
const WAIT_MS = 200
/** A connection whose client has ended its side must end within this time. */
const CLOSE_MS = 30_000

/** Makes bytes that no HTTP client would send: broken heads, lengths and chunks, several requests at once, any bytes. */
export function rawBytes(publicKey: string, request: FuzzRequest, random: Random): Buffer[] {
  const text = random() < 0.5 ? requestBytes(request) : Buffer.from(pick(headsOf(publicKey), random), 'latin1')
  const bytes = random() < 0.7 ? mutatePayload(text, random) : random() < 0.1 ? noise(random) : text
  const pieces = random() < 0.5 ? 0 : 1 + Math.floor(random() * 8)
  const cuts = Array.from({ length: pieces }, () => Math.floor(random() * bytes.length)).sort((a, b) => a - b)
  return [0, ...cuts].map((start, i) => bytes.subarray(start, cuts[i]))
}

/** Returns a request as it is on the wire. */
function requestBytes({ url, method, headers, body }: FuzzRequest): Buffer {
  const { pathname, search, host } = new URL(url)
  const bytes = Buffer.from(body ?? '')
  const lines = Object.entries({ host, ...headers, 'content-length': bytes.length }).map(([n, v]) => `${n}: ${v}\r\n`)
  return Buffer.concat([Buffer.from(`${method} ${pathname}${search} HTTP/1.1\r\n${lines.join('')}\r\n`), bytes])
}

function headsOf(publicKey: string): string[] {
  const head = `POST /drain/v1/logs HTTP/1.1\r\nhost: x\r\nx-service-public-key: ${publicKey}\r\ncontent-type: application/json\r\n`
  const read = 'GET /openapi.json HTTP/1.1\r\nhost: x\r\n'
  return [
    `${head}content-length: 2\r\n\r\n{}`,
    `${head}content-length: 99999999999999999999\r\n\r\n{}`,
    `${head}content-length: -1\r\n\r\n{}`,
    `${head}content-length: 2\r\ncontent-length: 3\r\n\r\n{}`,
    `${head}content-encoding: gzip, gzip\r\ncontent-length: 2\r\n\r\n\x1f\x8b`,
    `${head}transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
    `${head}transfer-encoding: chunked\r\n\r\n2;a=b\r\n{}\r\n0\r\nx: y\r\n\r\n`,
    `${head}transfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n{}`,
    `${head}transfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n0\r\n\r\n`,
    `${head}transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
    `${head}expect: 100-continue\r\ncontent-length: 2\r\n\r\n{}`,
    `${head}content-length: 2\r\n\r\n{}${head}content-length: 2\r\n\r\n{}`,
    `${read}\r\n`.repeat(20),
    `${read}connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-key: eA==\r\nsec-websocket-version: 13\r\n\r\n`,
    `${read}authorization: Bearer ${'x'.repeat(3_000)}\r\ncookie: ${'é;'.repeat(100)}\r\n\r\n`,
    'GET /openapi.json HTTP/1.0\r\n\r\n',
    'GET http://[::1]/%00%ff/../openapi.json?% HTTP/1.1\r\nhost: x\r\n\r\n',
    `GET /${'a'.repeat(20_000)} HTTP/1.1\r\nhost: x\r\n\r\n`,
    `GET / HTTP/1.1\r\nhost: x\r\n${'a: b\r\n'.repeat(2_000)}\r\n`,
    `OPTIONS /drain/v1/traces HTTP/1.1\r\nhost: x\r\norigin: https://a.test\r\naccess-control-request-method: POST\r\naccess-control-request-headers: ${'x,'.repeat(2_000)}\r\n\r\n`,
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  ]
}

const noise = (random: Random) => Buffer.from(Array.from({ length: 500 }, () => Math.floor(random() * 256)))

/**
 * Sends pieces on a new connection, and ends its side after the first answer or a moment. Returns the status of the answer
 * or `closed`, or `hangs` if the server does not close the connection then.
 */
export function speak(port: number, pieces: readonly Buffer[]): Promise<string> {
  return new Promise(resolve => {
    let outcome = 'closed'
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    const ending = setTimeout(() => socket.end(), WAIT_MS)
    const hanging = setTimeout(() => {
      outcome = 'hangs'
      socket.destroy()
    }, CLOSE_MS)
    socket.once('data', answer => {
      outcome = /^HTTP\/1\.1 (\d{3})/.exec(answer.toString('latin1'))?.[1] ?? 'not HTTP'
      socket.resume().end()
    })
    socket.on('error', () => {})
    socket.once('close', () => {
      clearTimeout(ending)
      clearTimeout(hanging)
      resolve(outcome)
    })
    for (const piece of pieces) socket.write(piece)
  })
}
