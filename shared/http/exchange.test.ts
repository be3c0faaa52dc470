import { setImmediate } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import { RawConnection, rawRequest, request, until } from '../../test/support/clients/raw-http-client.ts'
import type { Logger } from '../runtime/logger.ts'
import { problemReply, type Reply, type Route } from './route.ts'
import { createHttpServer, type HttpServer, type HttpServerOptions } from './server.ts'

const MIB = 1024 * 1024
const logger = { error: () => {}, warn: () => {} } as unknown as Logger

let server: HttpServer
const statuses: number[] = []

afterEach(async () => {
  await server.close(0)
  statuses.length = 0
})

async function serve(routes: Route[], options: Partial<HttpServerOptions> = {}): Promise<number> {
  const observe = (_: Route, status: number) => statuses.push(status)
  server = createHttpServer({ routes, logger, heldBodyLimitBytes: 64 * MIB, observe, ...options })
  return server.listen('127.0.0.1', 0)
}

const text = (body: string): Reply => ({ status: 200, body })
const post = (accept: Route['accept'], more: Partial<Route> = {}): Route => ({
  method: 'POST',
  path: '/',
  bodyLimitBytes: 20 * MIB,
  accept,
  ...more,
})
const get = (accept: Route['accept']): Route => ({ method: 'GET', path: '/', bodyLimitBytes: 0, accept })
/** Answers with the length and the sum of the bytes. */
const measure = post(() => body => text(`${body.length} ${checksum(body)}`))
const checksum = (bytes: Uint8Array) => bytes.reduce((sum, byte) => (sum * 31 + byte) >>> 0, 0)
const unauthorized = () => problemReply({ code: 'AUTH_MISSING', message: 'no key' })
const announce = (length: number, headers: Record<string, string> = {}) =>
  rawRequest('POST', '/', { 'content-length': String(length), ...headers })
const CHUNKED = rawRequest('POST', '/', { 'transfer-encoding': 'chunked' })
const chunk = (bytes: string) => `${bytes.length.toString(16)}\r\n${bytes}\r\n`

/** Sends until the server hangs up or `totalBytes` are out, reading nothing meanwhile; returns what was taken off our hands. */
async function flood(connection: RawConnection, totalBytes: number): Promise<number> {
  const { socket } = connection
  const piece = Buffer.alloc(256 * 1024, 120)
  socket.pause()
  let sent = 0
  while (sent < totalBytes && !socket.destroyed) {
    const next = Math.min(piece.length, totalBytes - sent)
    if (!socket.write(piece.subarray(0, next))) {
      await Promise.race([
        new Promise(resolve => socket.once('drain', resolve)),
        new Promise(resolve => socket.once('close', resolve)),
      ])
    }
    sent += next
  }
  socket.resume()
  return sent
}

describe('a body', () => {
  it('no longer counts as held once its handler says so, long before the answer', async () => {
    let answer = (_: Reply) => {}
    const port = await serve([
      post(() => async (body, held) => {
        const copy = Buffer.from(body)
        await setImmediate()
        held.release()
        return new Promise<Reply>(resolve => {
          answer = () => resolve(text(copy.toString()))
        })
      }),
    ])
    const connection = new RawConnection(port).send(announce(6)).send('abc')
    await until(() => server.heldBodyBytes > 0, 'the first half')
    connection.send('def')
    await until(() => server.heldBodyBytes === 0, 'the bytes to be let go')
    answer(text(''))
    expect((await connection.response()).body).toBe('abcdef')
    expect(server.heldBodyBytes).toBe(0)
  })

  it('arrives whole, in one piece and in many, announced and chunked', async () => {
    const port = await serve([measure])
    const body = Buffer.alloc(3 * MIB, 'the quick brown fox ')
    const expected = `${body.length} ${checksum(body)}`
    const announced = new RawConnection(port).send(announce(body.length))
    for (let at = 0; at < body.length; at += 700_001) announced.send(body.subarray(at, at + 700_001))
    expect((await announced.response()).body).toBe(expected)
    const chunked = new RawConnection(port).send(CHUNKED)
    for (let at = 0; at < body.length; at += 300_001) chunked.send(chunk(body.toString('latin1', at, at + 300_001)))
    expect((await chunked.send('0\r\n\r\n').response()).body).toBe(expected)
    const [, second] = await chunked.send(rawRequest('POST', '/', {}, 'abc')).responses(2)
    expect(second?.body).toBe(`3 ${checksum(Buffer.from('abc'))}`)
    expect((await request(port, rawRequest('POST', '/', {}, ''))).body).toBe('0 0')
    expect((await request(port, rawRequest('POST', '/'))).body).toBe('0 0')
    expect(server.heldBodyBytes).toBe(0)
    for (const { socket } of [announced, chunked]) socket.destroy()
  })

  it('is asked for where the client waits to be asked', async () => {
    const port = await serve([measure])
    const connection = new RawConnection(port).send(announce(2, { expect: '100-continue' }))
    await until(() => connection.received.startsWith('HTTP/1.1 100 Continue\r\n\r\n'), '100 Continue')
    expect((await connection.send('ab').response()).status).toBe(200)
    connection.socket.destroy()
  })

  it('may come before accept has decided', async () => {
    let decide = (_: Awaited<ReturnType<Route['accept']>>) => {}
    const port = await serve([
      post(
        () =>
          new Promise(resolve => {
            decide = resolve
          }),
      ),
    ])
    const connection = new RawConnection(port).send(announce(6)).send('abc')
    await until(() => server.heldBodyBytes > 0, 'the first half')
    connection.send('def')
    decide(body => text(body.toString()))
    expect((await connection.response()).body).toBe('abcdef')
    connection.socket.destroy()
  })
})

describe('a body over the limit', () => {
  it('is answered on its announcement, after the credential', async () => {
    let handled = 0
    const port = await serve([
      post(head => (head.header('key') ? () => text(String(++handled)) : unauthorized()), { bodyLimitBytes: 1_000 }),
    ])
    const large = new RawConnection(port).send(announce(1_000_000, { key: 'k' }))
    const response = await large.response()
    expect(response.status).toBe(413)
    expect(JSON.parse(response.body)).toMatchObject({
      code: 'REQUEST_INVALID',
      message: expect.stringContaining('1000 bytes'),
    })
    expect(response.headers.connection).toBe('close')
    expect(response.headers.date).toBeDefined()
    expect((await request(port, announce(1_000_000))).status).toBe(401)
    expect((await request(port, announce(1_001, { key: 'k' }) + 'x'.repeat(1_001))).status).toBe(413)
    expect((await request(port, announce(1_000, { key: 'k' }) + 'x'.repeat(1_000))).body).toBe('1')
    expect(handled).toBe(1)
    large.socket.destroy()
  })

  it('waits for a credential that takes its time', async () => {
    const late = (decision: Reply | (() => Reply)) => async () => {
      await new Promise(resolve => setTimeout(resolve, 30))
      return decision
    }
    const port = await serve([
      post(late(unauthorized()), { path: '/unknown', bodyLimitBytes: 10 }),
      post(
        late(() => text('ok')),
        { path: '/known', bodyLimitBytes: 10 },
      ),
    ])
    const chunkedTo = (path: string) =>
      rawRequest('POST', path, { 'transfer-encoding': 'chunked' }) + chunk('x'.repeat(100))
    expect((await request(port, chunkedTo('/unknown'))).status).toBe(401)
    expect((await request(port, chunkedTo('/known'))).status).toBe(413)
    expect((await request(port, `${chunkedTo('/known')}0\r\n\r\n`)).status).toBe(413)
    await until(() => server.heldBodyBytes === 0, 'the bytes to be let go')
  })

  it('is answered as the route words it, when it was not announced', async () => {
    const overLimit = { code: 'REPLAY_UPLOAD_REJECTED', status: 413, message: 'too large a chunk' } as const
    const renderProblem: Route['renderProblem'] = ({ message, status = 0 }) => ({ status, body: message })
    const port = await serve([post(() => () => text('ok'), { bodyLimitBytes: 1_000, overLimit, renderProblem })])
    const connection = new RawConnection(port)
      .send(CHUNKED)
      .send(chunk('x'.repeat(900)))
      .send(chunk('x'.repeat(101)))
    expect(await connection.response()).toMatchObject({ status: 413, body: 'too large a chunk' })
    expect(server.heldBodyBytes).toBe(0)
    await connection.send('0\r\n\r\n').end()
  })

  it('gets its answer across to a client that writes 21 MiB before it reads', async () => {
    const port = await serve([measure])
    const connection = new RawConnection(port).send(announce(21 * MIB))
    expect(await flood(connection, 21 * MIB)).toBe(21 * MIB)
    expect((await connection.response()).status).toBe(413)
    await connection.end()
    expect(connection.error).toBeUndefined()
  })

  it('is cut when it goes on and on', async () => {
    const port = await serve([measure], { discardLimitBytes: 2 * MIB })
    const connection = new RawConnection(port).send(announce(1024 * MIB))
    expect(await flood(connection, 1024 * MIB)).toBeLessThan(32 * MIB)
    await connection.end()
    expect((await request(port, rawRequest('POST', '/', {}, 'a'))).status).toBe(200)
  })

  it('is cut when it dawdles', async () => {
    const port = await serve([measure], { discardTimeoutMs: 100 })
    const connection = new RawConnection(port).send(announce(1024 * MIB)).send('x')
    expect((await connection.response()).status).toBe(413)
    const dawdler = setInterval(() => connection.send('x'), 10)
    await connection.end()
    clearInterval(dawdler)
  })
})

describe('a refusal that does not wait for the body', () => {
  it('keeps the connection when the rest is small', async () => {
    const port = await serve([post(head => (head.header('key') ? () => text('ok') : unauthorized()))])
    const connection = new RawConnection(port).send(announce(6)).send('abc')
    expect((await connection.response()).status).toBe(401)
    const [, second] = await connection.send(`def${announce(1, { key: 'k' })}x`).responses(2)
    expect(second).toMatchObject({ status: 200, body: 'ok' })
    connection.socket.destroy()
  })

  it('closes after the rest when that is large, and has no body where HTTP has none', async () => {
    const port = await serve([post(unauthorized), post(() => ({ status: 204 }), { path: '/empty' })])
    const body = Buffer.alloc(MIB)
    const refused = new RawConnection(port).send(announce(MIB))
    expect((await refused.response()).status).toBe(401)
    await refused.send(body).end()
    const empty = new RawConnection(port).send(rawRequest('POST', '/empty', { 'content-length': String(MIB) }))
    expect(await empty.response()).toMatchObject({ status: 204, body: '' })
    await empty.send(body).end()
    const together = new RawConnection(port).send(
      Buffer.concat([Buffer.from(announce(100_000)), Buffer.alloc(100_000)]),
    )
    expect((await together.response()).status).toBe(401)
    await together.end()
    expect([refused.error, empty.error, together.error]).toEqual([undefined, undefined, undefined])
  })
})

describe('a body that stops coming', () => {
  it('is answered 408, let go, and its connection closed', async () => {
    const port = await serve([measure], { bodyIdleTimeoutMs: 100, discardTimeoutMs: 100 })
    const connections = [new RawConnection(port).send(announce(10)).send('abc'), new RawConnection(port).send(CHUNKED)]
    for (const connection of connections) {
      const response = await connection.response()
      expect([response.status, response.headers.connection]).toEqual([408, 'close'])
      expect(JSON.parse(response.body)).toMatchObject({ code: 'REQUEST_INVALID' })
      await connection.end()
    }
    expect(server.heldBodyBytes).toBe(0)
  })

  it('is not confused with one that is slow', async () => {
    const port = await serve([measure], { bodyIdleTimeoutMs: 200 })
    const connection = new RawConnection(port).send(announce(30))
    const drip = setInterval(() => connection.send('x'), 20)
    expect((await connection.response()).status).toBe(200)
    clearInterval(drip)
    connection.socket.destroy()
  })
})

describe('a client that hangs up', () => {
  it('in the middle of its body lets the bytes go', async () => {
    const port = await serve([measure])
    const connection = new RawConnection(port).send(announce(100_000)).send('x'.repeat(50_000))
    await until(() => server.heldBodyBytes > 0, 'the first half')
    connection.socket.destroy()
    await until(() => server.heldBodyBytes === 0, 'the bytes to be let go')
    expect(statuses).toEqual([499])
  })

  it('in the middle of the handler has its answer dropped, its bytes held until then', async () => {
    let answer = (_: Reply) => {}
    const port = await serve([
      post(
        () => () =>
          new Promise<Reply>(resolve => {
            answer = resolve
          }),
      ),
      get(() => text('alive')),
    ])
    const connection = new RawConnection(port).send(rawRequest('POST', '/', {}, 'abc'))
    await until(() => server.heldBodyBytes === 3, 'the body')
    connection.socket.destroy()
    await until(() => statuses.length === 1, 'the hang-up')
    expect([statuses[0], server.heldBodyBytes]).toEqual([499, 3])
    answer(text('too late'))
    await until(() => server.heldBodyBytes === 0, 'the bytes to be let go')
    expect((await request(port, rawRequest('GET', '/'))).body).toBe('alive')
  })

  it('before accept has decided is forgotten', async () => {
    let decide = (_: Reply) => {}
    const port = await serve([
      post(
        () =>
          new Promise<Reply>(resolve => {
            decide = resolve
          }),
      ),
      get(() => text('alive')),
    ])
    const connection = new RawConnection(port).send(rawRequest('POST', '/', {}, 'abc'))
    await until(() => server.heldBodyBytes === 3, 'the body')
    connection.socket.destroy()
    await until(() => server.heldBodyBytes === 0, 'the bytes to be let go')
    decide(text('too late'))
    expect((await request(port, rawRequest('GET', '/'))).body).toBe('alive')
  })
})

describe('bodies beyond what may be held', () => {
  it('are answered 429 while others are being worked on', async () => {
    const waiting: ((reply: Reply) => void)[] = []
    const renderProblem: Route['renderProblem'] = problem => ({ ...problemReply(problem), body: 'try again' })
    const port = await serve([post(() => () => new Promise(resolve => waiting.push(resolve)), { renderProblem })], {
      heldBodyLimitBytes: 1_000,
    })
    const body = rawRequest('POST', '/', {}, 'x'.repeat(600))
    const first = new RawConnection(port).send(body)
    await until(() => waiting.length === 1, 'the first body')
    const refused = await request(port, body)
    expect(refused).toMatchObject({ status: 429, body: 'try again' })
    expect(refused.headers['retry-after']).toBe('1')
    waiting[0]?.(text('stored'))
    expect((await first.response()).body).toBe('stored')
    const second = new RawConnection(port).send(body)
    await until(() => waiting.length === 2, 'the next body')
    for (const { socket } of [first, second]) socket.destroy()
  })
})

describe('pipelined requests', () => {
  const three = ['a', 'bb', 'ccc'].map(body => rawRequest('POST', '/', {}, body)).join('')

  it('are answered in order when answers are at hand', async () => {
    const port = await serve([measure])
    const connection = new RawConnection(port).send(three)
    expect((await connection.responses(3)).map(response => response.body[0])).toEqual(['1', '2', '3'])
    connection.socket.destroy()
  })

  it('are all left unanswered when the first has to wait, and the server lives on', async () => {
    const port = await serve([
      post(() => async body => {
        await setImmediate()
        return text(String(body.length))
      }),
      get(() => text('alive')),
    ])
    const connection = new RawConnection(port).send(three)
    await connection.end()
    expect(connection.received).toBe('')
    await until(() => server.heldBodyBytes === 0, 'the bytes to be let go')
    expect((await request(port, rawRequest('GET', '/'))).body).toBe('alive')
  })
})

describe('a large answer', () => {
  it.each([
    ['text', 'é'.repeat(3_000_000)],
    ['bytes', Buffer.alloc(6_000_000, 'ab')],
  ])('of %s reaches a client that is slow to read', async (_, body) => {
    const port = await serve([get(async () => ({ status: 200, body }))])
    const connection = new RawConnection(port)
    connection.socket.pause()
    connection.send(rawRequest('GET', '/'))
    await until(() => statuses.length === 1, 'the answer to be under way')
    connection.socket.resume()
    const response = await connection.response()
    expect(response.headers['content-length']).toBe('6000000')
    expect(Buffer.from(response.body, 'latin1').equals(Buffer.from(body))).toBe(true)
    const [, second] = await connection.send(rawRequest('GET', '/')).responses(2)
    expect(second?.body.length).toBe(6_000_000)
    connection.socket.destroy()
  })
})

describe('a streamed answer', () => {
  const piece = Buffer.alloc(64 * 1024, 'z')

  it('arrives whole, with its head', async () => {
    async function* lines() {
      for (let line = 0; line < 1_000; line++) yield Buffer.from(`${line}\n`)
    }
    const port = await serve([
      get(() => ({ status: 200, headers: [['content-type', 'application/jsonl']], body: lines() })),
    ])
    const response = await request(port, rawRequest('GET', '/'))
    expect(response.headers['content-type']).toBe('application/jsonl')
    expect(response.body.split('\n')).toHaveLength(1_001)
  })

  it('is pulled no faster than the client reads, and stopped when it leaves', async () => {
    let pulled = 0
    let stopped = false
    async function* endless() {
      try {
        for (;;) {
          pulled++
          yield piece
        }
      } finally {
        stopped = true
      }
    }
    const port = await serve([get(() => ({ status: 200, body: endless() }))])
    const connection = new RawConnection(port)
    connection.socket.pause()
    connection.send(rawRequest('GET', '/'))
    let seen = -1
    await until(() => {
      const still = pulled > 0 && pulled === seen
      seen = pulled
      return still
    }, 'the stream to stall')
    expect(pulled * piece.length).toBeLessThan(16 * MIB)
    expect(stopped).toBe(false)
    connection.socket.destroy()
    await until(() => stopped, 'the source to be stopped')
  })

  it('goes on when the client reads again', async () => {
    async function* many() {
      for (let count = 0; count < 200; count++) yield piece
    }
    const port = await serve([get(() => ({ status: 200, body: many() }))])
    const connection = new RawConnection(port)
    connection.socket.pause()
    connection.send(rawRequest('GET', '/'))
    await until(() => statuses.length === 1, 'the answer to be under way')
    connection.socket.resume()
    expect((await connection.response()).body.length).toBe(200 * piece.length)
    connection.socket.destroy()
  })

  it('whose source fails is a problem before the first byte, and cut short after it', async () => {
    async function* failing(first: boolean) {
      if (first) yield piece
      throw new Error('clickhouse went away')
    }
    const port = await serve([
      { ...get(() => ({ status: 200, body: failing(false) })), path: '/at-once' },
      { ...get(() => ({ status: 200, body: failing(true) })), path: '/later' },
    ])
    expect((await request(port, rawRequest('GET', '/at-once'))).status).toBe(500)
    const later = new RawConnection(port).send(rawRequest('GET', '/later'))
    await later.end()
    expect(later.received).toContain('200 OK')
    expect(later.received).not.toContain('\r\n0\r\n')
  })
})
