import { setImmediate } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { RawConnection, rawRequest, request } from '../../../test/support/clients/raw-http-client.ts'
import { getRoute, postRoute, text, useHttpServer } from '../../../test/support/services/test-http-server.ts'

const { serve, logged } = useHttpServer()

describe('the head', () => {
  const echo = getRoute('/echo/:first/:second', head =>
    text(JSON.stringify([head.param('first'), head.param('second')])),
  )

  it('decodes path parameters, and returns nothing for malformed encodings', async () => {
    const port = await serve([echo])
    expect((await request(port, rawRequest('GET', '/echo/a%2Fb/%E4%B8%AD'))).body).toBe(
      '["a/b","中"]'.replace('中', '\xe4\xb8\xad'),
    )
    for (const malformed of ['%', '%zz', '%ff', 'a%2']) {
      expect((await request(port, rawRequest('GET', `/echo/${malformed}/x`))).body).toBe('["","x"]')
    }
    expect(logged).toEqual([])
  })

  it('decodes query values like URLSearchParams', async () => {
    const port = await serve([getRoute('/q', head => text(JSON.stringify([head.query('a'), head.query('b') ?? null])))])
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

  it('cannot be read after accept has returned', async () => {
    const port = await serve([
      getRoute('/late', async head => {
        await Promise.resolve()
        return text(head.header('host') ?? '')
      }),
    ])
    expect((await request(port, rawRequest('GET', '/late'))).status).toBe(500)
    expect(logged).toHaveLength(1)
  })

  it('may have 10 KiB and arrive in pieces', async () => {
    const port = await serve([getRoute('/', head => text(String(head.header('x-long')?.length)))])
    const bytes = rawRequest('GET', '/', { 'x-long': 'x'.repeat(10_000) })
    const connection = new RawConnection(port).send(bytes.slice(0, 5_000))
    await new Promise<void>(resolve => connection.socket.write('', () => resolve()))
    await setImmediate()
    expect((await connection.send(bytes.slice(5_000)).response()).body).toBe('10000')
    connection.socket.destroy()
  })
})

describe('a head that uWS passes on although it breaks a rule of HTTP', () => {
  const routes = [postRoute('/', () => body => text(String(body.length)))]
  const length = (...values: number[]) =>
    `POST / HTTP/1.1\r\nhost: x\r\n${values.map(value => `content-length: ${value}\r\n`).join('')}\r\n`
  const chunked = (more = '') =>
    `POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n${more}\r\n5\r\nhello\r\n0\r\n`

  it.each([
    ['two different lengths', `${length(5, 11)}hello`, /^content-length must not be sent twice/],
    [
      'two different lengths, of which the first is 0',
      `${length(0, 5)}hello`,
      /^content-length must not be sent twice/,
    ],
    ['a third one', `${length(5, 5, 6)}hello`, /^content-length must not be sent twice/],
  ])('is refused, and the connection is closed: %s', async (_name, bytes, message) => {
    const connection = new RawConnection(await serve(routes)).send(bytes)
    await connection.end()
    const { status, headers, body } = await connection.response()
    expect([status, headers.connection, JSON.parse(body)]).toEqual([
      400,
      'close',
      { code: 'REQUEST_INVALID', service: 'gateway', message: expect.stringMatching(message) },
    ])
  })

  it('is refused before its body where it announces trailers', async () => {
    const [head = '', ...body] = `${chunked('trailer: x-sum\r\n')}x-sum: 1\r\n\r\n`.split('\r\n\r\n')
    const connection = new RawConnection(await serve(routes)).send(`${head}\r\n\r\n`)
    expect(await connection.response()).toMatchObject({ status: 400, headers: { connection: 'close' } })
    connection.send(body.join('\r\n\r\n'))
    await connection.end()
    expect(connection.received).toContain('trailer fields are not supported')
  })

  it.each([
    ['the same length twice', `${length(5, 5)}hello`],
    ['a chunked body', `${chunked()}\r\n`],
  ])('is none with %s', async (_name, bytes) => {
    expect(await request(await serve(routes), bytes)).toMatchObject({ status: 200, body: '5' })
  })
})
