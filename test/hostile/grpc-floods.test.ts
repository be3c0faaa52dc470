import { type ClientHttp2Session, connect, constants } from 'node:http2'
import { connect as connectSocket, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, it } from 'vitest'
import { EXPORT_METHODS } from '../support/clients/grpc-client.ts'
import { ATTACK_MS } from '../support/hostile/attacker.ts'
import { expectUnharmed, type SmallService, startSmallService } from '../support/hostile/small-service.ts'
import { until } from '../support/until.ts'

const CONNECTIONS = 50

let service: SmallService
beforeAll(async () => {
  service = await startSmallService()
})
afterAll(() => service?.stop())

it('streams that are reset as soon as they are opened harm no other client', async () => {
  expectUnharmed(
    await service.during(async () => {
      await attack(session => {
        const stream = open(session)
        stream.write(Buffer.alloc(5))
        stream.close(constants.NGHTTP2_CANCEL)
      })
    }),
  )
})

it('messages that never end harm no other client, and are refused when their sender has too many', async () => {
  expectUnharmed(
    await service.during(async () => {
      await attack(session => void open(session).write(Buffer.concat([HALF_HEAD, Buffer.alloc(16_000)])))
    }),
  )
})

it('a head that never ends closes its connection', async () => {
  const sockets: Socket[] = []
  expectUnharmed(
    await service.during(async () => {
      for (let i = 0; i < CONNECTIONS; i++) sockets.push(flood())
      await delay(ATTACK_MS)
    }),
  )
  await until('every connection is closed', () => sockets.every(socket => socket.closed))
})

it('settings and pings without end harm no other client', async () => {
  expectUnharmed(
    await service.during(async () => {
      const sockets = Array.from({ length: CONNECTIONS }, () =>
        flood([frame(4, 0, 0), frame(6, 0, 0, Buffer.alloc(8))]),
      )
      await delay(ATTACK_MS)
      for (const socket of sockets) socket.destroy()
    }),
  )
})

/** The head of a message of 1 MiB. */
const HALF_HEAD = Buffer.from([0, 0, 16, 0, 0])

/** Opens connections that call `send` as often as they can, each on a new one when the server has closed it. */
async function attack(send: (session: ClientHttp2Session) => void): Promise<void> {
  const until = Date.now() + ATTACK_MS
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      let session = connectAgain()
      while (Date.now() < until) {
        if (session.closed || session.destroyed) session = connectAgain()
        for (let i = 0; i < 32; i++) send(session)
        await delay(1)
      }
      session.destroy()
    }),
  )
}

function connectAgain(): ClientHttp2Session {
  const session = connect(service.stack.grpcUrl)
  session.on('error', () => {})
  return session
}

function open(session: ClientHttp2Session) {
  const stream = session.request({
    ...{ ':method': 'POST', ':path': EXPORT_METHODS.traces, 'content-type': 'application/grpc' },
    'x-service-public-key': service.attacker.tenant.publicKey,
  })
  stream.on('error', () => {})
  return stream
}

/** Opens a connection of HTTP/2, and repeats these frames on it: by default the continuation of a head. */
function flood(frames?: readonly Buffer[]): Socket {
  const socket = connectSocket(Number(new URL(service.stack.grpcUrl).port), '127.0.0.1')
  const chunk = Buffer.concat(
    Array.from({ length: 20 }, () => Buffer.concat(frames ?? [frame(9, 0, 1, Buffer.alloc(1_000, LITERAL_FIELD))])),
  )
  const send = () => {
    while (!socket.destroyed && socket.write(chunk)) if (socket.writableLength > 1_000_000) return
  }
  socket.on('error', () => {})
  socket.on('drain', send)
  socket.resume()
  socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
  socket.write(frame(4, 0, 0))
  if (frames === undefined) socket.write(frame(1, 0, 1, LITERAL_FIELD))
  send()
  return socket
}

/** A header field of HPACK that is not indexed: `a: b`. */
const LITERAL_FIELD = Buffer.from([0, 1, 0x61, 1, 0x62])

/** A frame of HTTP/2 (RFC 9113 section 4.1). */
function frame(type: number, flags: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head.writeUInt8(type, 3)
  head.writeUInt8(flags, 4)
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}
