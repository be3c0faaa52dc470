import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { type AddressInfo, createConnection, createServer, type Server, type Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { AbstractConnector, Redis } from 'ioredis'
import { pino } from 'pino'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { MIB } from '../../../schemas/units.ts'
import { queueKeys } from '../../../shared/queue/queue.ts'
import { LARGE_BYTES } from './large-replies.ts'
import { openPayloadReader } from './payload-reader.ts'

/**
 * `payload-reader.ts` sits between the socket and the parser of ioredis, which ioredis does not document. These tests
 * state what it relies on. When one of them fails after an upgrade, compare `built/DataHandler.js`, `built/Redis.js` and
 * `built/connectors/AbstractConnector.js` of the new version with the assumptions, then change the version below.
 */
const REVIEWED_VERSION = '6.0.0'

let server: Server
let redis: Redis
/** Writes the replies to an SREM, the LRANGE after it and the GET after that. */
let replyToGet: (socket: Socket) => void
const opened: { disconnect(): void }[] = []

beforeEach(async () => {
  replyToGet = () => {}
  server = createServer(socket => {
    socket.setNoDelay(true)
    socket.on('error', () => socket.destroy())
    // Commands are small and arrive whole: `*2 CRLF $3 CRLF get CRLF $1 CRLF a CRLF`.
    socket.on('data', bytes => {
      for (const [, name] of bytes.toString('latin1').matchAll(/\*\d+\r\n\$\d+\r\n(\w+)\r\n/g)) {
        if (name === 'hello') socket.write('%1\r\n$5\r\nproto\r\n:3\r\n')
        else if (name === 'get') replyToGet(socket)
        else if (name === 'srem' || name === 'lrange') continue
        else socket.write('+OK\r\n')
      }
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  redis = open()
})

afterEach(() => {
  for (const client of opened.splice(0)) client.disconnect()
  server.close()
})

function open(Connector?: ReturnType<typeof connectorWith>): Redis {
  const { port } = server.address() as AddressInfo
  const client = new Redis(port, '127.0.0.1', { enableReadyCheck: false, ...(Connector && { Connector }) })
  opened.push(client)
  return client
}

/** Returns a connector class like that of the payload reader, whose socket the test can reach. */
function connectorWith(onConnect: (socket: Socket) => void) {
  return class extends AbstractConnector {
    constructor() {
      super(2_000)
    }

    async connect() {
      const { port } = server.address() as AddressInfo
      const socket = createConnection({ host: '127.0.0.1', port })
      this.stream = socket
      onConnect(socket)
      return socket
    }
  }
}

it('is pinned to the version that was compared with the payload reader', () => {
  const root = new URL('../../../package.json', import.meta.url)
  const { dependencies } = JSON.parse(readFileSync(root, 'utf8'))
  expect(dependencies.ioredis).toBe(REVIEWED_VERSION)
  const installed = createRequire(import.meta.url)
    .resolve('ioredis')
    .replace(/built\/.*$/, 'package.json')
  expect(JSON.parse(readFileSync(installed, 'utf8')).version).toBe(REVIEWED_VERSION)
})

it('decodes whatever the "data" event of the connector stream emits, in any pieces', async () => {
  let socket: Socket | undefined
  const client = open(connectorWith(connected => (socket = connected)))
  await once(client, 'ready')
  // The reply comes from the event alone: the server sends nothing.
  for (const [pieces, reply] of [
    [[':7\r\n'], 7],
    [[':', '1', '2', '\r', '\n'], 12],
    [['$5\r\nhe', 'llo', '\r\n'], Buffer.from('hello')],
    [['_\r\n'], null],
  ] as const) {
    const reading = client.getBuffer('a')
    await nextTurn()
    for (const piece of pieces) socket?.emit('data', Buffer.from(piece))
    // An integer stays a number, although getBuffer is typed to return a buffer.
    expect(await reading).toEqual(reply)
  }
})

it('copies or consumes the emitted bytes before the emit returns', async () => {
  let socket: Socket | undefined
  const client = open(connectorWith(connected => (socket = connected)))
  await once(client, 'ready')
  const reading = client.getBuffer('a')
  await nextTurn()
  const bytes = Buffer.from(':31\r\n')
  socket?.emit('data', bytes)
  bytes.fill(0)
  expect(await reading).toBe(31)
})

it('registers its parser with the "data" event of the stream, and ends the stream of the connector', async () => {
  let socket: Socket | undefined
  const client = open(connectorWith(connected => (socket = connected)))
  await once(client, 'ready')
  expect(socket?.listenerCount('data')).toBe(1)
  client.disconnect()
  await once(socket as Socket, 'close')
  expect(client.status).toBe('end')
})

it.each([
  ['at every length', [1, 2, 3, 5, 8, 1_000, 20_000]],
  ['in the middle of the header', [3, 1, 100_000]],
  ['in one piece', [1_000_000]],
])('reads payloads around the parser when replies are split %s', async (_name, pieces) => {
  const values = [LARGE_BYTES - 1, LARGE_BYTES, 200_000].map((size, i) => Buffer.alloc(size, `${i}\r\n$9\r\n`))
  const replies = values.map(value =>
    Buffer.concat([Buffer.from(`:1\r\n*0\r\n$${value.length}\r\n`), value, Buffer.from('\r\n')]),
  )
  const stream = Buffer.concat(replies)
  let requests = 0
  replyToGet = async socket => {
    if (++requests < values.length) return
    for (let at = 0, turn = 0; at < stream.length; turn++) {
      const end = at + (pieces[turn % pieces.length] as number)
      socket.write(stream.subarray(at, end))
      await nextTurn()
      at = end
    }
  }
  const reader = openPayloadReader(redis, pino({ level: 'silent' }), { maxIdleBytes: MIB })
  opened.push({ disconnect: () => reader.close() })
  const read = await Promise.all(values.map((_, i) => reader.read(queueKeys('traces'), `${i}`)))
  expect(read.map((value, i) => value?.equals(values[i] as Buffer))).toEqual([true, true, true])
})
