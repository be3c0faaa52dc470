import { setImmediate } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { KIB, MIB } from '../../../schemas/units.ts'
import { RawConnection, rawRequest, request } from '../../../test/support/clients/raw-http-client.ts'
import { getRoute, postRoute, text, useHttpServer } from '../../../test/support/services/test-http-server.ts'
import { until } from '../../../test/support/until.ts'
import type { Reply, Route } from '../route.ts'

const { serve, statuses, heldBodyBytes } = useHttpServer()

const post = (accept: Route['accept']) => postRoute('/', accept)
const get = (accept: Route['accept']) => getRoute('/', accept)

describe('pipelined requests', () => {
  const three = ['a', 'bb', 'ccc'].map(body => rawRequest('POST', '/', {}, body)).join('')

  it('are served in order when replies need no I/O', async () => {
    const port = await serve([post(() => body => text(String(body.length)))])
    const connection = new RawConnection(port).send(three)
    expect((await connection.responses(3)).map(response => response.body[0])).toEqual(['1', '2', '3'])
    connection.socket.destroy()
  })

  it('are all dropped when the first one has to wait, and the server continues', async () => {
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
    await until('the bytes to be freed', () => heldBodyBytes() === 0)
    expect((await request(port, rawRequest('GET', '/'))).body).toBe('alive')
  })
})

describe('a client that sends requests and reads nothing', () => {
  it.each([
    ['GET', '/'],
    ['GET', '/nowhere'],
    ['HEAD', '/'],
    ['OPTIONS', '/'],
    ['POST', '/'],
  ])('loses its connection after some %s of %s, before the server keeps many responses', async (method, target) => {
    const port = await serve([get(() => text('x'.repeat(1_000))), post(() => ({ status: 200 }))])
    const connection = new RawConnection(port)
    connection.socket.pause()
    const before = process.memoryUsage.rss()
    const requests = rawRequest(method, target, { 'content-length': '0' }).repeat(1_000)
    await until('the connection to be closed', async () => {
      if (connection.socket.writable && connection.socket.writableLength < MIB) connection.send(requests)
      return connection.error !== undefined
    })
    expect(process.memoryUsage.rss() - before).toBeLessThan(32 * MIB)
    expect((await request(port, rawRequest('GET', '/'))).status).toBe(200)
  })
})

it('closes the connection after one of 1,000 responses without a body, with a header that announces it', async () => {
  const port = await serve([post(() => () => ({ status: 200 }))])
  let connection = new RawConnection(port)
  let closed = 0
  for (let sent = 0, answered = 0; sent < 2_000; sent++) {
    const responses = await connection.send(rawRequest('POST', '/', {}, 'x')).responses(++answered)
    expect(responses.at(-1)).toMatchObject({ status: 200, body: '', headers: { 'content-length': '0' } })
    if (responses.at(-1)?.headers.connection !== 'close') continue
    await connection.end()
    expect(connection.error).toBeUndefined()
    closed++
    answered = 0
    connection = new RawConnection(port)
  }
  connection.socket.destroy()
  expect(closed).toBe(2)
})

describe('a large response', () => {
  it.each([
    ['text', 'é'.repeat(3_000_000)],
    ['bytes', Buffer.alloc(6_000_000, 'ab')],
  ])('made of %s reaches a client that is slow to read', async (_, body) => {
    const port = await serve([get(async () => ({ status: 200, body }))])
    const connection = new RawConnection(port)
    connection.socket.pause()
    connection.send(rawRequest('GET', '/'))
    await until('the response to begin', () => statuses.length === 1)
    connection.socket.resume()
    const response = await connection.response()
    expect(response.headers['content-length']).toBe('6000000')
    expect(Buffer.from(response.body, 'latin1').equals(Buffer.from(body))).toBe(true)
    const [, second] = await connection.send(rawRequest('GET', '/')).responses(2)
    expect(second?.body.length).toBe(6_000_000)
    connection.socket.destroy()
  })
})

describe('the end of a response', () => {
  it.each<[string, number]>([
    ['small', 10],
    ['large', 6_000_000],
  ])('is reported once, after a %s one', async (_, size) => {
    let ends = 0
    const port = await serve([get(() => ({ ...text('x'.repeat(size)), onEnd: () => ends++ }))])
    expect((await request(port, rawRequest('GET', '/'))).body.length).toBe(size)
    await until('the end', () => ends > 0)
    expect(ends).toBe(1)
  })

  it('is reported if the client leaves while a large one is written, or before there is one', async () => {
    const ends: string[] = []
    let reply = () => {}
    const waiting = new Promise<void>(resolve => {
      reply = resolve
    })
    const port = await serve([
      { ...get(() => ({ ...text('x'.repeat(50_000_000)), onEnd: () => ends.push('large') })), path: '/large' },
      {
        ...get(() => waiting.then(() => ({ ...text('late'), onEnd: () => ends.push('late') }))),
        path: '/late',
      },
    ])
    const large = new RawConnection(port)
    large.socket.pause()
    large.send(rawRequest('GET', '/large'))
    await until('the response to begin', () => statuses.length === 1)
    const late = new RawConnection(port).send(rawRequest('GET', '/late'))
    await setImmediate()
    for (const { socket } of [large, late]) socket.destroy()
    await until('the end of the large response', () => ends.includes('large'))
    await until('the client to be gone', () => statuses.includes(499))
    reply()
    await until('the end of the late response', () => ends.includes('late'))
    expect(ends).toHaveLength(2)
  })
})

describe('the work for a response', () => {
  it('learns that its client has left', async () => {
    const seen: string[] = []
    const port = await serve([
      get(head => {
        const closed = head.closed()
        seen.push('started')
        return new Promise(resolve => {
          closed.addEventListener('abort', () => {
            seen.push('left')
            resolve(text(''))
          })
        })
      }),
    ])
    const connection = new RawConnection(port).send(rawRequest('GET', '/'))
    await until('the work to start', () => seen.length === 1)
    connection.socket.destroy()
    await until('the work to end', () => seen.includes('left'))
  })
})

describe('a client that reads nothing', () => {
  async function* endless() {
    for (;;) yield Buffer.alloc(64 * KIB, 'z')
  }
  it.each<[string, () => Reply]>([
    ['a large response', () => text('x'.repeat(50_000_000))],
    ['a stream', () => ({ status: 200, body: endless() })],
  ])('loses %s when its allowance of time is used up', async (_, reply) => {
    let ended = false
    const route = get(() => ({ ...reply(), onEnd: () => (ended = true) }))
    const port = await serve([route], { readAllowanceMs: 300 })
    const connection = new RawConnection(port)
    connection.socket.pause()
    connection.send(rawRequest('GET', '/'))
    // uWS itself would wait for ten seconds.
    await until('the response to be cut', () => ended, { deadlineMs: 5_000 })
    connection.socket.destroy()
  })
})

describe('a streamed response', () => {
  const piece = Buffer.alloc(64 * KIB, 'z')

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

  it('is pulled no faster than the client reads, and stopped when the client leaves', async () => {
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
    await until('the stream to stall', () => {
      const still = pulled > 0 && pulled === seen
      seen = pulled
      return still
    })
    expect(pulled * piece.length).toBeLessThan(16 * MIB)
    expect(stopped).toBe(false)
    connection.socket.destroy()
    await until('the source to be stopped', () => stopped)
  })

  it('continues when the client reads again', async () => {
    async function* many() {
      for (let count = 0; count < 200; count++) yield piece
    }
    const port = await serve([get(() => ({ status: 200, body: many() }))])
    const connection = new RawConnection(port)
    connection.socket.pause()
    connection.send(rawRequest('GET', '/'))
    await until('the response to begin', () => statuses.length === 1)
    connection.socket.resume()
    expect((await connection.response()).body.length).toBe(200 * piece.length)
    connection.socket.destroy()
  })

  it('becomes a problem if its source fails before the first byte, and is cut short after it', async () => {
    async function* failing(first: boolean) {
      if (first) yield piece
      throw new Error('clickhouse is unavailable')
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
