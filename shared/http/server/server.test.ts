import { describe, expect, it } from 'vitest'
import { RawConnection, rawRequest, request } from '../../../test/support/clients/raw-http-client.ts'
import { getRoute, postRoute, text, useHttpServer } from '../../../test/support/services/test-http-server.ts'
import { until } from '../../../test/support/until.ts'
import { problemReply, type Reply, type Route } from '../route.ts'

const { serve, start, take, logged } = useHttpServer()

describe('paths and methods', () => {
  it('refuses an unknown path with a problem', async () => {
    const port = await serve([getRoute('/known', () => text('yes'))])
    const response = await request(port, rawRequest('GET', '/unknown'))
    expect(response.status).toBe(404)
    expect(response.headers['content-type']).toBe('application/json')
    expect(JSON.parse(response.body)).toEqual({
      code: 'NOT_FOUND',
      message: expect.any(String),
      service: 'gateway',
    })
  })

  it('names what helps where the path is missing, in the same refusal, unless there is a route', async () => {
    const port = await serve([getRoute('/known', () => text('yes'))])
    for (const method of ['GET', 'POST']) {
      const { status, body } = await request(port, rawRequest(method, '/?a=b'))
      const problem = { code: 'NOT_FOUND', message: expect.stringContaining('/openapi.json'), service: 'gateway' }
      expect([status, JSON.parse(body)]).toEqual([404, problem])
    }
    expect((await request(await serve([getRoute('/', () => text('yes'))]), rawRequest('GET', '/'))).status).toBe(200)
  })

  it('lists the methods of all routes of a path, whatever the names of their parameters', async () => {
    const port = await serve([
      getRoute('/things/:id', () => text('one')),
      { ...getRoute('/things/:thing', () => text('gone')), method: 'DELETE' },
    ])
    const response = await request(port, rawRequest('PUT', '/things/1', {}, '{}'))
    expect(response.status).toBe(405)
    expect(response.headers.allow).toBe('GET, HEAD, DELETE, OPTIONS')
    expect(JSON.parse(response.body)).toMatchObject({ code: 'METHOD_NOT_ALLOWED' })
    const options = await request(port, rawRequest('OPTIONS', '/things/1'))
    expect([options.status, options.headers.allow]).toEqual([204, 'GET, HEAD, DELETE, OPTIONS'])
    expect(options.headers['content-length']).toBeUndefined()
    expect((await request(port, rawRequest('DELETE', '/things/1'))).body).toBe('gone')
    expect((await request(port, rawRequest('BREW', '/things/1'))).status).toBe(405)
  })

  it('replies to HEAD with the head of the GET', async () => {
    const port = await serve([getRoute('/text', () => () => text('hello'))])
    const connection = new RawConnection(port).send(rawRequest('HEAD', '/text') + rawRequest('HEAD', '/nowhere'))
    await until('two heads', () => connection.received.split('\r\n\r\n').length === 3)
    const [first, second, rest] = connection.received.split('\r\n\r\n')
    expect(first).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
    expect(first).toContain('content-length: 5')
    expect(second).toMatch(/^HTTP\/1\.1 404 Not Found\r\n/)
    expect(rest).toBe('')
    connection.socket.destroy()
  })

  it('renders a 405 like the other problems of the path', async () => {
    const renderProblem: Route['renderProblem'] = problem => ({ status: 405, body: `no: ${problem.code}` })
    const port = await serve([postRoute('/drain/v1/:signal', () => text('ok'), { renderProblem })])
    expect((await request(port, rawRequest('GET', '/drain/v1/traces'))).body).toBe('no: METHOD_NOT_ALLOWED')
  })
})

describe('faults', () => {
  it.each<[string, Route['accept']]>([
    [
      'accept throws',
      () => {
        throw new Error('pk_secret')
      },
    ],
    ['accept rejects', () => Promise.reject(new Error('pk_secret'))],
    [
      'the handler throws',
      () => () => {
        throw new Error('pk_secret')
      },
    ],
    ['the handler rejects', () => () => Promise.reject(new Error('pk_secret'))],
    ['the handler rejects without an error', () => () => Promise.reject()],
  ])('returns INTERNAL when %s, and serves the next request', async (_, accept) => {
    const port = await serve([postRoute('/faulty/:id', accept), getRoute('/fine', () => text('fine'))])
    const connection = new RawConnection(port).send(rawRequest('POST', '/faulty/7?public_key=pk_query', {}, '{}'))
    const response = await connection.response()
    expect(response.status).toBe(500)
    expect(JSON.parse(response.body)).toEqual({ code: 'INTERNAL', message: expect.any(String), service: 'gateway' })
    expect(response.body).not.toContain('secret')
    expect(logged[0]?.[0]).toMatchObject({ method: 'POST', route: '/faulty/:id' })
    expect(JSON.stringify(logged)).not.toContain('pk_query')
    const [, next] = await connection.send(rawRequest('GET', '/fine')).responses(2)
    expect(next?.body).toBe('fine')
    connection.socket.destroy()
  })

  it('survives a reply that cannot be written and a rendering that throws', async () => {
    const port = await serve([
      getRoute('/unwritable', () => ({ status: 200, headers: [['x', {} as never]] })),
      getRoute('/undefined', () => (() => undefined) as never),
      postRoute('/unrendered', () => text('ok'), {
        renderProblem: () => {
          throw new Error('not rendered')
        },
      }),
      getRoute('/fine', () => text('fine')),
    ])
    for (const path of ['/unwritable', '/undefined']) {
      const connection = new RawConnection(port).send(rawRequest('GET', path))
      await connection.end()
    }
    expect((await request(port, rawRequest('POST', '/unrendered', { 'content-length': '5000' }))).status).toBe(200)
    expect((await request(port, rawRequest('GET', '/fine'))).body).toBe('fine')
  })

  it('rejects when the port is in use', async () => {
    const port = await serve([])
    await expect(start([]).listen('127.0.0.1', port)).rejects.toThrow(`127.0.0.1:${port}`)
  })
})

describe('observe', () => {
  it('receives the route, the status and the duration', async () => {
    const seen: unknown[] = []
    let clock = 0
    const route = postRoute('/timed', () => () => text('ok'))
    const port = await serve([route], {
      now: () => (clock += 5),
      observe: (observed, status, durationMs) => seen.push([observed.path, status, durationMs]),
    })
    await request(port, rawRequest('POST', '/timed', {}, 'x'))
    await request(port, rawRequest('GET', '/nowhere'))
    expect(seen).toEqual([
      ['/timed', 200, 5],
      ['/*', 404, 5],
    ])
  })
})

describe('close', () => {
  it('lets a request in flight finish, asks its client to close the connection, and closes idle connections', async () => {
    let release = (_: Reply) => {}
    const port = await serve([
      getRoute(
        '/slow',
        () =>
          new Promise<Reply>(resolve => {
            release = resolve
          }),
      ),
      getRoute('/fast', () => text('fast')),
    ])
    const idle = new RawConnection(port).send(rawRequest('GET', '/fast'))
    await idle.response()
    const busy = new RawConnection(port).send(rawRequest('GET', '/slow'))
    const server = take()
    await idle.send(rawRequest('GET', '/fast')).responses(2)
    const closed = server?.close(5_000)
    const late = new RawConnection(port)
    await late.end()
    expect(late.error).toBe('ECONNREFUSED')
    release(text('done'))
    const response = await busy.response()
    expect([response.status, response.body, response.headers.connection]).toEqual([200, 'done', 'close'])
    await closed
    await Promise.all([busy.end(), idle.end()])
    expect([busy.error, idle.error]).toEqual([undefined, undefined])
  })

  it('still serves new and open connections once clients are asked to leave, and each response closes its connection', async () => {
    const port = await serve([getRoute('/fast', () => text('fast'))])
    const open = new RawConnection(port).send(rawRequest('GET', '/fast'))
    expect((await open.response()).headers.connection).toBeUndefined()
    const server = take()
    server?.askToLeave()
    await open.send(rawRequest('GET', '/fast')).responses(2)
    expect(open.received).toContain('connection: close')
    const late = await request(port, rawRequest('GET', '/fast'))
    expect([late.status, late.headers.connection]).toEqual([200, 'close'])
    await server?.close(1_000)
  })

  it('closes all connections at the deadline', async () => {
    const port = await serve([getRoute('/stuck', () => new Promise<Reply>(() => {}))])
    const stuck = new RawConnection(port).send(rawRequest('GET', '/stuck'))
    await request(port, rawRequest('GET', '/other'))
    const server = take()
    await server?.close(50)
    await stuck.end()
    expect(stuck.received).toBe('')
  })
})

describe('the limit of connections', () => {
  it('closes further connections at once, and accepts new ones when others have closed', async () => {
    const port = await serve([getRoute('/', () => text('served'))], { connectionsLimit: 3 })
    const connections = Array.from({ length: 5 }, () => new RawConnection(port))
    await until('two closed connections', () => connections.filter(({ closed }) => closed).length === 2)
    const open = connections.filter(({ closed }) => !closed)
    for (const connection of open) {
      expect((await connection.send(rawRequest('GET', '/')).response()).body).toBe('served')
    }
    open[0]?.socket.destroy()
    await until('a new connection to be served', async () => {
      const response = await request(port, rawRequest('GET', '/')).catch(() => undefined)
      return response?.body === 'served'
    })
    for (const { socket } of open) socket.destroy()
  })
})

describe('a connection without a request', () => {
  it('is closed after 8 to 12 seconds, from which proxies derive their settings', async () => {
    const port = await serve([getRoute('/', () => text('served'))])
    const connection = new RawConnection(port).send(rawRequest('GET', '/'))
    await connection.response()
    const startedAt = performance.now()
    await until('the connection is closed', () => connection.closed, { deadlineMs: 30_000 })
    const seconds = (performance.now() - startedAt) / 1_000
    expect(seconds).toBeGreaterThan(7.5)
    expect(seconds).toBeLessThan(15)
  })
})

describe('the limit of held bodies', () => {
  it('refuses a body with 429 while others are handled', async () => {
    const waiting: ((reply: Reply) => void)[] = []
    const renderProblem: Route['renderProblem'] = problem => ({ ...problemReply(problem), body: 'try again' })
    const port = await serve(
      [postRoute('/', () => () => new Promise(resolve => waiting.push(resolve)), { renderProblem })],
      {
        heldBodyLimitBytes: 1_000,
      },
    )
    const body = rawRequest('POST', '/', {}, 'x'.repeat(600))
    const first = new RawConnection(port).send(body)
    await until('the first body', () => waiting.length === 1)
    const refused = await request(port, body)
    expect(refused).toMatchObject({ status: 429, body: 'try again' })
    expect(refused.headers['retry-after']).toBe('1')
    expect(refused.headers['keep-alive']).toBe('timeout=10')
    waiting[0]?.(text('stored'))
    expect((await first.response()).body).toBe('stored')
    const second = new RawConnection(port).send(body)
    await until('the next body', () => waiting.length === 2)
    for (const { socket } of [first, second]) socket.destroy()
  })
})

it('refuses another method of a plain path, although a path with a parameter has it', async () => {
  const port = await serve([
    postRoute('/things/purge', () => () => text('purged')),
    getRoute('/things/:id', () => text('read')),
  ])
  expect((await request(port, rawRequest('GET', '/things/purge'))).status).toBe(405)
  expect((await request(port, rawRequest('GET', '/things/other'))).status).toBe(200)
  expect((await request(port, rawRequest('POST', '/things/purge', {}, '{}'))).status).toBe(200)
})

describe('ids of requests', () => {
  const refuse: Route['accept'] = () => problemReply({ code: 'NOT_FOUND', message: 'nothing' })
  const fail: Route['accept'] = async () => {
    throw new Error('broken')
  }
  const TRACEPARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

  it.each<[string, Record<string, string>, string | RegExp]>([
    ['the x-request-id of the client', { 'x-request-id': 'build-7', traceparent: TRACEPARENT }, 'build-7'],
    ['the trace id of its traceparent', { traceparent: TRACEPARENT }, '0af7651916cd43dd8448eb211c80319c'],
    ['a new id if there is none', {}, /^[0-9a-f-]{36}$/],
    ['a new id for one that may be a key', { 'x-request-id': 'pk_0123456789' }, /^[0-9a-f-]{36}$/],
    ['a new id for one that is too long', { 'x-request-id': 'a'.repeat(65) }, /^[0-9a-f-]{36}$/],
    ['a new id for a malformed traceparent', { traceparent: 'x'.repeat(55) }, /^[0-9a-f-]{36}$/],
  ])('a refusal and a failure have %s', async (_, headers, expected) => {
    const port = await serve([getRoute('/refused', refuse), getRoute('/failed', fail)])
    for (const path of ['/refused', '/failed', '/unknown']) {
      const { headers: answered } = await request(port, rawRequest('GET', path, headers))
      expect(answered['x-request-id']).toMatch(expected)
    }
  })

  it('the log of a failure has the id that its client got, also after the body', async () => {
    const port = await serve([
      getRoute('/failed', fail),
      postRoute('/late', () => async () => {
        throw new Error('broken')
      }),
    ])
    const early = await request(port, rawRequest('GET', '/failed'))
    const late = await request(port, rawRequest('POST', '/late', {}, '{}'))
    expect([early.status, late.status]).toEqual([500, 500])
    for (const { headers } of [early, late]) {
      expect(headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/)
      expect(JSON.stringify(logged)).toContain(`"requestId":"${headers['x-request-id']}"`)
    }
  })

  it('a request that is accepted has its id too, whatever the method', async () => {
    const port = await serve([postRoute('/taken', () => () => text('ok')), getRoute('/read', () => text('ok'))])
    for (const [method, path] of [
      ['POST', '/taken'],
      ['GET', '/read'],
      ['OPTIONS', '/read'],
    ] as const) {
      const sent = rawRequest(method, path, { 'x-request-id': 'mine' }, method === 'POST' ? '{}' : undefined)
      expect((await request(port, sent)).headers['x-request-id'], method).toBe('mine')
    }
  })
})
