import { setImmediate, setTimeout } from 'node:timers/promises'
import { beforeEach, describe, expect, it } from 'vitest'
import { GIB, KIB, MIB } from '../../../schemas/units.ts'
import { RawConnection, rawRequest, request } from '../../../test/support/clients/raw-http-client.ts'
import { getRoute, postRoute, text, useHttpServer } from '../../../test/support/services/test-http-server.ts'
import { until } from '../../../test/support/until.ts'
import {
  ANSWERED,
  type BodyHandler,
  type HeldBody,
  problemReply,
  type Reply,
  type RequestCounter,
  type Route,
} from '../route.ts'

const { serve, statuses, heldBodyBytes, logged } = useHttpServer()

const post = (accept: Route['accept'], more: Partial<Route> = {}) =>
  postRoute('/', accept, { bodyLimitBytes: 20 * MIB, ...more })
const get = (accept: Route['accept']) => getRoute('/', accept)
/** Replies with the length and the checksum of the body. */
const measure = post(() => body => text(`${body.length} ${checksum(body)}`))
const checksum = (bytes: Uint8Array) => bytes.reduce((sum, byte) => (sum * 31 + byte) >>> 0, 0)
const unauthorized = () => problemReply({ code: 'AUTH_MISSING', message: 'no key' })
const announce = (length: number, headers: Record<string, string> = {}) =>
  rawRequest('POST', '/', { 'content-length': String(length), ...headers })
const CHUNKED = rawRequest('POST', '/', { 'transfer-encoding': 'chunked' })
const chunk = (bytes: string) => `${bytes.length.toString(16)}\r\n${bytes}\r\n`

/**
 * Sends until the server closes the connection or `totalBytes` are sent, and reads nothing meanwhile. Returns the sent
 * bytes.
 */
async function flood(connection: RawConnection, totalBytes: number): Promise<number> {
  const { socket } = connection
  const piece = Buffer.alloc(256 * KIB, 120)
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
  it('no longer counts as held once its handler releases it, long before the reply', async () => {
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
    await until('the first half', () => heldBodyBytes() > 0)
    connection.send('def')
    await until('the bytes to be freed', () => heldBodyBytes() === 0)
    answer(text(''))
    expect((await connection.response()).body).toBe('abcdef')
    expect(heldBodyBytes()).toBe(0)
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
    expect(heldBodyBytes()).toBe(0)
    for (const { socket } of [announced, chunked]) socket.destroy()
  })

  it('is requested with 100 Continue where the client waits for that', async () => {
    const port = await serve([measure])
    const connection = new RawConnection(port).send(announce(2, { expect: '100-continue' }))
    await until('100 Continue', () => connection.received.startsWith('HTTP/1.1 100 Continue\r\n\r\n'))
    expect((await connection.send('ab').response()).status).toBe(200)
    connection.socket.destroy()
  })

  it('may arrive before accept has decided', async () => {
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
    await until('the first half', () => heldBodyBytes() > 0)
    connection.send('def')
    decide(body => text(body.toString()))
    expect((await connection.response()).body).toBe('abcdef')
    connection.socket.destroy()
  })
})

describe('a body over the limit', () => {
  it('is refused as soon as it is announced, after the credential was checked', async () => {
    let handled = 0
    const port = await serve([
      post(head => (head.header('key') ? () => text(String(++handled)) : unauthorized()), { bodyLimitBytes: 1_000 }),
    ])
    const large = new RawConnection(port).send(announce(2_000_000, { key: 'k' }))
    const response = await large.response()
    expect(response.status).toBe(413)
    expect(JSON.parse(response.body)).toMatchObject({
      code: 'REQUEST_INVALID',
      message: expect.stringContaining('1000 bytes'),
    })
    expect(response.headers.connection).toBe('close')
    expect(response.headers.date).toBeDefined()
    expect((await request(port, announce(2_000_000))).status).toBe(401)
    expect((await request(port, announce(1_001, { key: 'k' }) + 'x'.repeat(1_001))).status).toBe(413)
    expect((await request(port, announce(1_000, { key: 'k' }) + 'x'.repeat(1_000))).body).toBe('1')
    expect(handled).toBe(1)
    large.socket.destroy()
  })

  it('is refused only after a slow check of the credential', async () => {
    const late = (decision: Reply | (() => Reply)) => async () => {
      await setTimeout(30)
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
    await until('the bytes to be freed', () => heldBodyBytes() === 0)
  })

  it('is refused with the problem of the route when it was not announced', async () => {
    const overLimit = { code: 'REPLAY_UPLOAD_REJECTED', status: 413, message: 'the chunk is too large' } as const
    const renderProblem: Route['renderProblem'] = ({ message, status = 0 }) => ({ status, body: message })
    const port = await serve([post(() => () => text('ok'), { bodyLimitBytes: 1_000, overLimit, renderProblem })])
    const connection = new RawConnection(port)
      .send(CHUNKED)
      .send(chunk('x'.repeat(900)))
      .send(chunk('x'.repeat(101)))
    expect(await connection.response()).toMatchObject({ status: 413, body: 'the chunk is too large' })
    expect(heldBodyBytes()).toBe(0)
    await connection.send('0\r\n\r\n').end()
  })

  it('is refused in a way that reaches a client which writes 21 MiB before it reads', async () => {
    const port = await serve([measure])
    const connection = new RawConnection(port).send(announce(21 * MIB))
    expect(await flood(connection, 21 * MIB)).toBe(21 * MIB)
    expect((await connection.response()).status).toBe(413)
    await connection.end()
    expect(connection.error).toBeUndefined()
  })

  it('is cut off after the limit of discarded bytes', async () => {
    const port = await serve([measure], { discardLimitBytes: 2 * MIB })
    const connection = new RawConnection(port).send(announce(GIB))
    expect(await flood(connection, GIB)).toBeLessThan(32 * MIB)
    await connection.end()
    expect((await request(port, rawRequest('POST', '/', {}, 'a'))).status).toBe(200)
  })

  it('is cut off after the limit of time', async () => {
    const port = await serve([measure], { discardTimeoutMs: 100 })
    const connection = new RawConnection(port).send(announce(GIB)).send('x')
    expect((await connection.response()).status).toBe(413)
    const trickle = setInterval(() => connection.send('x'), 10)
    await connection.end()
    clearInterval(trickle)
  })
})

describe('a refusal before the end of the body', () => {
  it('keeps the connection when the rest of the body has at most 1 MiB', async () => {
    const port = await serve([post(head => (head.header('key') ? () => text('ok') : unauthorized()))])
    for (const rest of ['def', 'x'.repeat(MIB - 3)]) {
      const connection = new RawConnection(port).send(announce(3 + rest.length)).send('abc')
      expect((await connection.response()).status).toBe(401)
      const [, second] = await connection.send(`${rest}${announce(1, { key: 'k' })}x`).responses(2)
      expect(second).toMatchObject({ status: 200, body: 'ok' })
      connection.socket.destroy()
    }
  })

  it('closes the connection after a large rest, and has no body with status 204', async () => {
    const port = await serve([post(unauthorized), post(() => ({ status: 204 }), { path: '/empty' })])
    const body = Buffer.alloc(2 * MIB)
    const refused = new RawConnection(port).send(announce(body.length))
    expect((await refused.response()).status).toBe(401)
    await refused.send(body).end()
    const empty = new RawConnection(port).send(rawRequest('POST', '/empty', { 'content-length': String(body.length) }))
    expect(await empty.response()).toMatchObject({ status: 204, body: '' })
    await empty.send(body).end()
    const together = new RawConnection(port).send(Buffer.concat([Buffer.from(announce(body.length)), body]))
    expect((await together.response()).status).toBe(401)
    await together.end()
    expect([refused.error, empty.error, together.error]).toEqual([undefined, undefined, undefined])
  })
})

describe('a body that stops arriving', () => {
  it('is refused with 408, freed, and its connection closed', async () => {
    const port = await serve([measure], { bodyIdleTimeoutMs: 100, discardTimeoutMs: 100 })
    const connections = [new RawConnection(port).send(announce(10)).send('abc'), new RawConnection(port).send(CHUNKED)]
    for (const connection of connections) {
      const response = await connection.response()
      expect([response.status, response.headers.connection]).toEqual([408, 'close'])
      expect(JSON.parse(response.body)).toMatchObject({ code: 'REQUEST_INVALID' })
      await connection.end()
    }
    expect(heldBodyBytes()).toBe(0)
  })

  it('is distinguished from a slow one', async () => {
    const port = await serve([measure], { bodyIdleTimeoutMs: 200 })
    const connection = new RawConnection(port).send(announce(30))
    const drip = setInterval(() => connection.send('x'), 20)
    expect((await connection.response()).status).toBe(200)
    clearInterval(drip)
    connection.socket.destroy()
  })
})

describe('a body that arrives slowly', () => {
  /** Sends this many bytes every 20 ms until there is a response. */
  async function drip(port: number, bytes: number) {
    const connection = new RawConnection(port).send(announce(16 * KIB))
    const piece = 'x'.repeat(bytes)
    const timer = setInterval(() => connection.send(piece), 20)
    const response = await connection.response()
    clearInterval(timer)
    connection.socket.destroy()
    return response
  }

  it('is refused with 408 when it is not complete in time, although data keeps arriving', async () => {
    const port = await serve([measure], { bodyGraceMs: 200 })
    const response = await drip(port, 1)
    expect(response.status).toBe(408)
    expect(response.body).toContain('16 KiB per second')
    expect(heldBodyBytes()).toBe(0)
  })

  it('is accepted, however long it takes, when it brings 16 KiB per second', async () => {
    const port = await serve([measure], { bodyGraceMs: 200 })
    expect((await drip(port, 512)).status).toBe(200)
  })
})

describe('the bodies of one owner', () => {
  const owned = (more: Partial<Route> = {}) =>
    post((head, body) => {
      body.belongsTo(head.header('owner') ?? '')
      return bytes => text(String(bytes.length))
    }, more)
  const stalled = (port: number, owner: string, bytes: number) =>
    new RawConnection(port).send(announce(10 * MIB, { owner })).send('x'.repeat(bytes))

  it('leave memory for those of others, and are refused with 429 beyond their share', async () => {
    const port = await serve([owned()], { heldBodyLimitBytes: 12 * MIB })
    const connections = Array.from({ length: 20 }, () => stalled(port, 'a', MIB))
    await until('a refusal', () => statuses.includes(429))
    expect(heldBodyBytes()).toBeLessThanOrEqual(8 * MIB)
    const refused = await until('its response', () => connections.find(({ received }) => received !== ''))
    expect((await refused.response()).headers['retry-after']).toBe('1')
    const other = await request(port, announce(MIB, { owner: 'b' }) + 'x'.repeat(MIB))
    expect(other).toMatchObject({ status: 200, body: String(MIB) })
    for (const { socket } of connections) socket.destroy()
    await until('the bytes to be freed', () => heldBodyBytes() === 0)
  })

  it('may be only half of those that arrive at once, and those of others are received meanwhile', async () => {
    const port = await serve([owned()], { arrivingBodiesLimit: 8, bodyIdleTimeoutMs: 1_000 })
    const connections = Array.from({ length: 10 }, (_, i) => stalled(port, 'a', i % 2))
    await until('six refusals', () => statuses.length === 6)
    expect(statuses).toEqual(Array.from({ length: 6 }, () => 429))
    const other = stalled(port, 'b', 1)
    await other.send('x'.repeat(10 * MIB - 1)).response()
    expect(statuses.at(-1)).toBe(200)
    for (const { socket } of [...connections, other]) socket.destroy()
  })

  it('are not read on before the owner is known', async () => {
    let decide = () => {}
    const waiting = new Promise<void>(resolve => {
      decide = resolve
    })
    const port = await serve([
      post(async (_, body) => {
        await waiting
        body.belongsTo('a')
        return bytes => text(`${bytes.length} ${checksum(bytes)}`)
      }),
    ])
    const body = Buffer.alloc(4 * MIB, 'the quick brown fox ')
    const connection = new RawConnection(port).send(announce(body.length)).send(body)
    await until('the first bytes', () => heldBodyBytes() > 0)
    await setTimeout(100)
    expect(heldBodyBytes()).toBeLessThanOrEqual(1 * MIB)
    decide()
    expect((await connection.response()).body).toBe(`${body.length} ${checksum(body)}`)
    connection.socket.destroy()
  })
})

describe('a request of a known sender', () => {
  const ended: unknown[][] = []
  const counter: RequestCounter = { ended: (...request) => void ended.push(request), overQuota: () => {} }
  const counted = (handler: BodyHandler) =>
    post((_, body) => {
      body.belongsTo('a', counter)
      return handler
    })
  beforeEach(() => void ended.splice(0))

  it('is counted once, by its commit or else by its status', async () => {
    const port = await serve([
      counted((bytes, held) => {
        if (bytes.length === 1) throw new Error('broken')
        if (bytes.length === 2) held.committed('unconfirmed', 5)
        return problemReply({ code: 'INGEST_INFRA_UNAVAILABLE', message: 'later' })
      }),
    ])
    for (const length of [1, 2, 3]) await request(port, announce(length) + 'x'.repeat(length))
    await request(port, announce(30 * MIB))
    expect(ended).toEqual([
      ['a', 500, undefined],
      ['a', 'unconfirmed', 5],
      ['a', 503, undefined],
      ['a', 413, undefined],
    ])
  })

  it('is counted when its client has left while it was committed, and not when the body is not complete', async () => {
    let commit = () => {}
    const port = await serve([
      counted((_, held) => {
        const { promise, resolve } = Promise.withResolvers<Reply>()
        commit = () => {
          held.committed('acknowledged', 7)
          resolve(text('stored'))
        }
        return promise
      }),
    ])
    const incomplete = new RawConnection(port).send(announce(6)).send('abc')
    await until('the first half', () => heldBodyBytes() > 0)
    incomplete.socket.destroy()
    await until('the first one to leave', () => statuses.length === 1)
    const complete = new RawConnection(port).send(announce(3)).send('abc')
    await until('the body', () => heldBodyBytes() === 3)
    complete.socket.destroy()
    await until('the second one to leave', () => statuses.length === 2)
    expect(ended).toEqual([])
    commit()
    await until('its commit', () => heldBodyBytes() === 0)
    expect(ended).toEqual([['a', 'acknowledged', 7]])
  })
})

describe('a handler that answers through its request', () => {
  const waiting: HeldBody[] = []
  const route = post(
    () => (body, held) => {
      if (body.toString() === 'now') held.answer(text('at once'))
      else waiting.push(held)
      return ANSWERED
    },
    { renderProblem: ({ code }) => ({ status: 503, body: `rendered ${code}` }) },
  )
  beforeEach(() => void waiting.splice(0))

  it('may do so before it returns', async () => {
    const port = await serve([route])
    expect(await request(port, rawRequest('POST', '/', {}, 'now'))).toMatchObject({ status: 200, body: 'at once' })
    expect([statuses, heldBodyBytes()]).toEqual([[200], 0])
  })

  it('may answer many requests at once, each with its receipt or with a problem of its route', async () => {
    const port = await serve([route])
    const connections = ['a', 'b', 'c'].map(body => new RawConnection(port).send(rawRequest('POST', '/', {}, body)))
    await until('all of them to wait', () => waiting.length === 3)
    expect(heldBodyBytes()).toBe(3)
    for (const [i, held] of waiting.entries()) {
      held.committed(i === 1 ? 'unconfirmed' : 'acknowledged', 1, i === 1 ? undefined : Buffer.from(`rct_${i}`))
      if (i === 1) held.refuse({ code: 'INGEST_INFRA_UNAVAILABLE', message: 'later' })
      else held.answer(text(`reply ${i}`))
    }
    expect(heldBodyBytes()).toBe(0)
    const responses = await Promise.all(connections.map(connection => connection.response()))
    const seen = responses.map(({ status, body, headers }) => [status, body, headers['x-receipt-id']])
    expect(seen.sort()).toEqual([
      [200, 'reply 0', 'rct_0'],
      [200, 'reply 2', 'rct_2'],
      [503, 'rendered INGEST_INFRA_UNAVAILABLE', undefined],
    ])
    for (const { socket } of connections) socket.destroy()
  })

  it('frees the bytes of a client that has left', async () => {
    const port = await serve([route])
    const connection = new RawConnection(port).send(rawRequest('POST', '/', {}, 'abc'))
    await until('it to wait', () => waiting.length === 1)
    connection.socket.destroy()
    await until('the closed connection', () => statuses.length === 1)
    waiting[0]?.answer(text('too late'))
    expect([statuses, heldBodyBytes()]).toEqual([[499], 0])
  })

  it('gets no second response when it throws afterwards', async () => {
    const port = await serve([
      post(() => (_, held) => {
        held.answer(text('first'))
        throw new Error('broken')
      }),
    ])
    expect((await request(port, rawRequest('POST', '/', {}, 'abc'))).body).toBe('first')
    expect(statuses).toEqual([200])
    expect(logged).toHaveLength(1)
  })
})

describe('a client that closes the connection', () => {
  it('in the middle of its body frees the bytes', async () => {
    const port = await serve([measure])
    const connection = new RawConnection(port).send(announce(100_000)).send('x'.repeat(50_000))
    await until('the first half', () => heldBodyBytes() > 0)
    connection.socket.destroy()
    await until('the bytes to be freed', () => heldBodyBytes() === 0)
    expect(statuses).toEqual([499])
  })

  it('while the handler runs gets no response, and its bytes stay held until the handler settles', async () => {
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
    await until('the body', () => heldBodyBytes() === 3)
    connection.socket.destroy()
    await until('the closed connection', () => statuses.length === 1)
    expect([statuses[0], heldBodyBytes()]).toEqual([499, 3])
    answer(text('too late'))
    await until('the bytes to be freed', () => heldBodyBytes() === 0)
    expect((await request(port, rawRequest('GET', '/'))).body).toBe('alive')
  })

  it('while a response waits for its source ends the source, which is not logged as a fault', async () => {
    let ended = false
    async function* waitFor(closed: AbortSignal) {
      yield Buffer.from('first')
      await new Promise(resolve => closed.addEventListener('abort', resolve))
      ended = true
      throw new Error('the read was ended')
    }
    const port = await serve([get(head => ({ status: 200, headers: [], body: waitFor(head.closed()) }))])
    const connection = new RawConnection(port).send(rawRequest('GET', '/'))
    await until('the first piece', () => connection.received.includes('first'))
    connection.socket.destroy()
    await until('the end of the source', () => ended)
    await setImmediate()
    expect(logged).toEqual([])
  })

  it('before accept has decided is ignored', async () => {
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
    await until('the body', () => heldBodyBytes() === 3)
    connection.socket.destroy()
    await until('the bytes to be freed', () => heldBodyBytes() === 0)
    decide(text('too late'))
    expect((await request(port, rawRequest('GET', '/'))).body).toBe('alive')
  })
})
