import { setImmediate } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import { RawConnection, rawRequest, request, until } from '../../test/support/clients/raw-http-client.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Reply, Route } from './route.ts'
import { createHttpServer, type HttpServer, type HttpServerOptions } from './server.ts'

const servers: HttpServer[] = []
const logged: unknown[][] = []
const logger = { error: (...entry: unknown[]) => logged.push(entry), warn: () => {} } as unknown as Logger

afterEach(async () => {
  await Promise.all(servers.splice(0).map(server => server.close(0)))
  logged.length = 0
})

async function serve(routes: Route[], options: Partial<HttpServerOptions> = {}): Promise<number> {
  const server = createHttpServer({ routes, logger, heldBodyLimitBytes: 1 << 20, ...options })
  servers.push(server)
  return server.listen('127.0.0.1', 0)
}

const text = (body: string): Reply => ({ status: 200, headers: [['content-type', 'text/plain']], body })
const get = (path: string, accept: Route['accept'], more: Partial<Route> = {}): Route => ({
  method: 'GET',
  path,
  bodyLimitBytes: 0,
  accept,
  ...more,
})
const post = (path: string, accept: Route['accept'], more: Partial<Route> = {}): Route => ({
  method: 'POST',
  path,
  bodyLimitBytes: 1_000,
  accept,
  ...more,
})

describe('paths and methods', () => {
  it('answers an unknown path with a problem', async () => {
    const port = await serve([get('/known', () => text('yes'))])
    const response = await request(port, rawRequest('GET', '/unknown'))
    expect(response.status).toBe(404)
    expect(response.headers['content-type']).toBe('application/json')
    expect(JSON.parse(response.body)).toEqual({
      code: 'NOT_FOUND',
      message: expect.any(String),
      service: 'gateway',
    })
  })

  it('names the methods of all routes of a path, whatever they call their parameters', async () => {
    const port = await serve([
      get('/things/:id', () => text('one')),
      { ...get('/things/:thing', () => text('gone')), method: 'DELETE' },
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

  it('answers HEAD with the head of the GET', async () => {
    const port = await serve([get('/text', () => () => text('hello'))])
    const connection = new RawConnection(port).send(rawRequest('HEAD', '/text') + rawRequest('HEAD', '/nowhere'))
    await until(() => connection.received.split('\r\n\r\n').length === 3, 'two heads')
    const [first, second, rest] = connection.received.split('\r\n\r\n')
    expect(first).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
    expect(first).toContain('content-length: 5')
    expect(second).toMatch(/^HTTP\/1\.1 404 Not Found\r\n/)
    expect(rest).toBe('')
    connection.socket.destroy()
  })

  it('words a 405 as the path words its problems', async () => {
    const renderProblem: Route['renderProblem'] = problem => ({ status: 405, body: `no: ${problem.code}` })
    const port = await serve([post('/drain/v1/:signal', () => text('ok'), { renderProblem })])
    expect((await request(port, rawRequest('GET', '/drain/v1/traces'))).body).toBe('no: METHOD_NOT_ALLOWED')
  })
})

describe('the head', () => {
  const echo = get('/echo/:first/:second', head => text(JSON.stringify([head.param('first'), head.param('second')])))

  it('decodes path parameters, and refuses malformed encodings', async () => {
    const port = await serve([echo])
    expect((await request(port, rawRequest('GET', '/echo/a%2Fb/%E4%B8%AD'))).body).toBe(
      '["a/b","中"]'.replace('中', '\xe4\xb8\xad'),
    )
    for (const malformed of ['%', '%zz', '%ff', 'a%2']) {
      const response = await request(port, rawRequest('GET', `/echo/${malformed}/x`))
      expect([response.status, JSON.parse(response.body).code]).toEqual([400, 'REQUEST_INVALID'])
    }
    expect(logged).toEqual([])
  })

  it('decodes query values as URLSearchParams does', async () => {
    const port = await serve([get('/q', head => text(JSON.stringify([head.query('a'), head.query('b') ?? null])))])
    const queries = [
      '?a=1&b=x%20y',
      '?b=a+b&a=',
      '?a',
      '?ab=1&a=2&a=3',
      '?a=%zz&b=%',
      '?a=b=c&b=%26%3d',
      '?%61=1',
      '?',
      '',
      '?&&=&b=%00',
    ]
    for (const query of queries) {
      const expected = new URLSearchParams(query)
      const response = await request(port, rawRequest('GET', `/q${query}`))
      expect([query, ...JSON.parse(response.body)]).toEqual([query, expected.get('a'), expected.get('b')])
    }
  })

  it('is refused to those who read it too late', async () => {
    const port = await serve([
      get('/late', async head => {
        await Promise.resolve()
        return text(head.header('host') ?? '')
      }),
    ])
    expect((await request(port, rawRequest('GET', '/late'))).status).toBe(500)
    expect(logged).toHaveLength(1)
  })

  it('may be 10 KiB long and come in pieces', async () => {
    const port = await serve([get('/', head => text(String(head.header('x-long')?.length)))])
    const bytes = rawRequest('GET', '/', { 'x-long': 'x'.repeat(10_000) })
    const connection = new RawConnection(port).send(bytes.slice(0, 5_000))
    await new Promise<void>(resolve => connection.socket.write('', () => resolve()))
    await setImmediate()
    expect((await connection.send(bytes.slice(5_000)).response()).body).toBe('10000')
    connection.socket.destroy()
  })
})

describe('CORS', () => {
  const refusing = post('/ingest', head => (head.header('x-service-public-key') ? () => text('ok') : { status: 401 }), {
    cors: true,
  })
  const origin = 'https://shop.example'
  const granted = {
    'access-control-allow-origin': origin,
    'access-control-allow-credentials': 'true',
    vary: 'Origin',
  }

  it('answers a preflight, with the headers it asks for where they are header names', async () => {
    const port = await serve([refusing])
    const asked = {
      origin,
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'traceparent, Content-Type,b@d, *',
    }
    const response = await request(port, rawRequest('OPTIONS', '/ingest', asked))
    expect(response.status).toBe(204)
    expect(response.headers).toMatchObject({
      ...granted,
      'access-control-allow-methods': 'POST',
      'access-control-allow-headers':
        'x-service-public-key, x-replay-metadata, content-type, content-encoding, authorization, traceparent',
      'access-control-max-age': '86400',
    })
  })

  it('lets the page read every answer, refusals of all kinds too', async () => {
    const port = await serve([refusing])
    const key = { 'x-service-public-key': 'pk' }
    const answers = [
      await request(port, rawRequest('POST', '/ingest', { origin, ...key }, 'x')),
      await request(port, rawRequest('POST', '/ingest', { origin }, 'x')),
      await request(port, rawRequest('POST', '/ingest', { origin, ...key, 'content-length': '5000000' })),
      await request(port, rawRequest('PUT', '/ingest', { origin }, 'x')),
    ]
    expect(answers.map(answer => answer.status)).toEqual([200, 401, 413, 405])
    for (const answer of answers) {
      expect(answer.headers).toMatchObject({ ...granted, 'access-control-expose-headers': 'Retry-After, x-receipt-id' })
    }
  })

  it('says nothing without an origin, to a forged one, and on other routes', async () => {
    const port = await serve([refusing, post('/private', () => text('ok'))])
    const answers = [
      await request(port, rawRequest('POST', '/ingest', {}, 'x')),
      await request(port, rawRequest('POST', '/ingest', { origin: 'https://a\nset-cookie: b' }, 'x')),
      await request(port, rawRequest('POST', '/private', { origin }, 'x')),
    ]
    for (const answer of answers) expect(answer.headers['access-control-allow-origin']).toBeUndefined()
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
    ['the handler rejects with nothing', () => () => Promise.reject()],
  ])('answers INTERNAL when %s, and serves the next request', async (_, accept) => {
    const port = await serve([post('/faulty/:id', accept), get('/fine', () => text('fine'))])
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
      get('/unwritable', () => ({ status: 200, headers: [['x', {} as never]] })),
      get('/undefined', () => (() => undefined) as never),
      post('/unworded', () => text('ok'), {
        renderProblem: () => {
          throw new Error('no words')
        },
      }),
      get('/fine', () => text('fine')),
    ])
    for (const path of ['/unwritable', '/undefined']) {
      const connection = new RawConnection(port).send(rawRequest('GET', path))
      await connection.end()
    }
    expect((await request(port, rawRequest('POST', '/unworded', { 'content-length': '5000' }))).status).toBe(200)
    expect((await request(port, rawRequest('GET', '/fine'))).body).toBe('fine')
  })

  it('says so when the port cannot be had', async () => {
    const port = await serve([])
    const second = createHttpServer({ routes: [], logger, heldBodyLimitBytes: 1 })
    servers.push(second)
    await expect(second.listen('127.0.0.1', port)).rejects.toThrow(`127.0.0.1:${port}`)
  })
})

describe('observe', () => {
  it('gets the route, the status and the time it took', async () => {
    const seen: unknown[] = []
    let clock = 0
    const route = post('/timed', () => () => text('ok'))
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
  it('lets a request in flight finish, asks for the connection back, and closes idle connections', async () => {
    let release = (_: Reply) => {}
    const port = await serve([
      get(
        '/slow',
        () =>
          new Promise<Reply>(resolve => {
            release = resolve
          }),
      ),
      get('/fast', () => text('fast')),
    ])
    const idle = new RawConnection(port).send(rawRequest('GET', '/fast'))
    await idle.response()
    const busy = new RawConnection(port).send(rawRequest('GET', '/slow'))
    const [server] = servers.splice(0)
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

  it('does not wait beyond the deadline', async () => {
    const port = await serve([get('/stuck', () => new Promise<Reply>(() => {}))])
    const stuck = new RawConnection(port).send(rawRequest('GET', '/stuck'))
    await request(port, rawRequest('GET', '/other'))
    const [server] = servers.splice(0)
    await server?.close(50)
    await stuck.end()
    expect(stuck.received).toBe('')
  })
})
