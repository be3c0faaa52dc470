import { describe, expect, it } from 'vitest'
import { rawRequest, request } from '../../../test/support/clients/raw-http-client.ts'
import { postRoute, text, useHttpServer } from '../../../test/support/services/test-http-server.ts'

const { serve } = useHttpServer()

describe('CORS', () => {
  const refusing = postRoute(
    '/ingest',
    head => (head.header('x-service-public-key') ? () => text('ok') : { status: 401 }),
    {
      cors: true,
    },
  )
  const origin = 'https://shop.example'
  const granted = {
    'access-control-allow-origin': origin,
    'access-control-allow-credentials': 'true',
    vary: 'Origin',
  }

  it('allows the requested headers in a preflight if they are valid names', async () => {
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

  it('lets the page read every response, refusals included', async () => {
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
      expect(answer.headers).toMatchObject({
        ...granted,
        'access-control-expose-headers': 'Retry-After, WWW-Authenticate, x-receipt-id, x-request-id',
      })
    }
  })

  it('lets the page read the refusal of an unknown path', async () => {
    const port = await serve([refusing])
    const preflight = { origin, 'access-control-request-method': 'POST' }
    const allowed = await request(port, rawRequest('OPTIONS', '/ingest/', preflight))
    expect(allowed.status).toBe(204)
    expect(allowed.headers).toMatchObject({
      ...granted,
      'access-control-allow-methods': 'GET, HEAD, POST, PUT, DELETE',
    })
    const refused = await request(port, rawRequest('POST', '/ingest/', { origin }, 'x'))
    expect([refused.status, JSON.parse(refused.body).code]).toEqual([404, 'NOT_FOUND'])
    expect(refused.headers).toMatchObject(granted)
    expect((await request(port, rawRequest('OPTIONS', '/ingest/'))).status).toBe(404)
  })

  it('sends no CORS headers without an origin, to a forged one, and on other routes', async () => {
    const port = await serve([refusing, postRoute('/private', () => text('ok'))])
    const answers = [
      await request(port, rawRequest('POST', '/ingest', {}, 'x')),
      await request(port, rawRequest('POST', '/ingest', { origin: 'https://a\nset-cookie: b' }, 'x')),
      await request(port, rawRequest('POST', '/private', { origin }, 'x')),
    ]
    for (const answer of answers) expect(answer.headers['access-control-allow-origin']).toBeUndefined()
  })
})
