import { createHmac } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import {
  call,
  FAR_EXPIRY,
  insertExceptions,
  insertSpans,
  sessionPublicKeyPem,
  signToken,
} from '../../../support/services/api.ts'
import { api, ask, client, FINDING, id, nextTraceId, OTHER_FINDING, read, span, store } from './fixture.ts'

describe('a trace is not found', () => {
  const notFound = {
    status: 404,
    body: { code: 'FINDING_NOT_FOUND', message: expect.any(String), service: 'api-findings' },
  }

  it('by a malformed or unknown finding or trace id, or as a trace of another finding', async () => {
    const traceId = await store([span(1)])
    await insertExceptions(client, [{ findingId: OTHER_FINDING, traceId: nextTraceId() }])
    expect(await ask(traceId, '', OTHER_FINDING)).toEqual(notFound)
    expect(await ask(traceId, '', `fnd_${'z'.repeat(26)}`)).toEqual(notFound)
    for (const malformed of [
      'fnd_',
      'x',
      `fnd_${'a'.repeat(27)}`,
      `fnd_${'a'.repeat(25)}'`,
      '%00',
      '%F0%9F%A6%8A',
      '%FF',
    ]) {
      expect(await ask(traceId, '', malformed)).toEqual(notFound)
    }
    const malformedTraces = [
      traceId.slice(1),
      `${traceId}0`,
      'g'.repeat(32),
      `${traceId.slice(1)}F`,
      '%27%20OR%201',
      '%',
    ]
    for (const malformed of [...malformedTraces, nextTraceId(), '0'.repeat(32)]) {
      expect(await ask(malformed)).toEqual(notFound)
    }
  })

  it('only by an id that is neither of 128 nor of 64 bits', async () => {
    const traceId = await store([span(1)])
    const short = traceId.slice(16)
    const bearer = await signToken()
    const get = (request: string, body?: unknown) => call(api.baseUrl, request, { bearer, ...(body ? { body } : {}) })
    const found = { status: 200, body: { traceId } }
    expect(await get(`GET /v3/traces/${short}`)).toMatchObject(found)
    expect(await get(`GET /v3/traces/${short}/completeness`)).toMatchObject(found)
    expect(await get(`POST /v3/traces/${short}/spans`, { spanIds: [id(1)] })).toMatchObject(found)
    expect(await ask(short)).toMatchObject(found)
    for (const tool of ['tempo/api/traces', 'tempo/api/v2/traces', 'jaeger/api/traces']) {
      expect(await get(`GET /${tool}/${short}`)).toMatchObject({ status: 200 })
    }
    for (const other of [traceId.slice(15), short.slice(1), '', '0'.repeat(16)]) {
      expect(await get(`GET /v3/traces/${other || '%20'}`)).toMatchObject({ status: 404 })
    }
  })

  it('if all its spans have expired', async () => {
    const traceId = nextTraceId()
    await insertExceptions(client, [{ findingId: FINDING, traceId }])
    expect(await ask(traceId)).toEqual(notFound)
  })

  it('from another workspace, even if it has the same ids', async () => {
    const traceId = await store([span(1)])
    const own = await signToken({ sub: 'user_2', org: 'globex' })
    expect(await ask(traceId, '', FINDING, own)).toEqual(notFound)
    // The other workspace has a trace and a finding with the same ids, and each workspace sees its own.
    await insertSpans(client, [{ ...span(2), traceId, workspaceId: 'ws_2', name: 'of globex' }])
    await insertExceptions(client, [{ findingId: FINDING, traceId, workspaceId: 'ws_2' }])
    expect((await ask(traceId, '', FINDING, own)).body).toMatchObject({ spans: [{ name: 'of globex' }] })
    expect((await read(traceId)).spans).toMatchObject([{ name: `span ${id(1)}` }])
  })

  it('by a user who is not a member of the organization, or with an unknown organization', async () => {
    const traceId = await store([span(1)])
    expect(await ask(traceId, '', FINDING, await signToken({ sub: 'user_2' }))).toEqual(notFound)
    expect(await ask(traceId, '', FINDING, await signToken({ org: 'nowhere' }))).toEqual(notFound)
    expect(await ask(traceId, '?limit=0', FINDING, await signToken({ sub: 'user_2' }))).toEqual(notFound)
  })
})

describe('access to a trace', () => {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const claims = { iss: 'https://login.test', aud: 'penstock', sub: 'user_1', org: 'acme', exp: FAR_EXPIRY }
  const hs256 = () => {
    const signed = `${part({ alg: 'HS256' })}.${part(claims)}`
    return `${signed}.${createHmac('sha256', sessionPublicKeyPem).update(signed).digest('base64url')}`
  }

  it.each<[string, () => string | Promise<string> | undefined, RegExp]>([
    ['no token', () => undefined, /absent/],
    ['garbage', () => 'garbage', /malformed/],
    ['an expired token', () => signToken({ exp: 1_700_000_000 }), /expired/],
    ['a token of another issuer', () => signToken({ iss: 'https://evil.test' }), /another issuer/],
    ['a token for another audience', () => signToken({ aud: 'elsewhere' }), /another audience/],
    ['a token without a signature', () => `${part({ alg: 'none' })}.${part(claims)}.`, /algorithm/],
    ['a token signed with the public key as a secret', hs256, /algorithm/],
    ['a changed token', async () => (await signToken()).replace(/\.[^.]+\./, `.${part(claims)}.`), /signature/],
  ])('is refused with 401 AUTH_MISSING and a reason for %s', async (_, bad, message) => {
    const { status, body } = await ask(nextTraceId(), '', FINDING, (await bad()) ?? null)
    expect(status).toBe(401)
    expect(body).toEqual({ code: 'AUTH_MISSING', message: expect.stringMatching(message), service: 'frontier-auth' })
  })

  it('is offered to a request without a usable token', async () => {
    const url = `${api.baseUrl}/v3/findings/%FF/traces/${nextTraceId()}`
    const challenge = async (headers: Record<string, string>) => {
      const response = await fetch(url, { headers })
      return [response.status, response.headers.get('www-authenticate')]
    }
    expect(await challenge({})).toEqual([401, 'Bearer realm="penstock"'])
    const refused = [401, 'Bearer realm="penstock", error="invalid_token"']
    expect(await challenge({ authorization: 'Bearer garbage' })).toEqual(refused)
  })

  it('requires an organization and the permission', async () => {
    const traceId = await store([span(1)])
    expect(await ask(traceId, '', FINDING, await signToken({ org: undefined }))).toMatchObject({
      status: 403,
      body: { code: 'AUTH_ORG_REQUIRED', service: 'frontier-auth' },
    })
    expect(await ask(traceId, '', FINDING, await signToken({ sub: 'user_limited' }))).toMatchObject({
      status: 403,
      body: { code: 'PERMISSION_DENIED', message: expect.stringContaining('org:findings:read') },
    })
  })

  it('accepts only GET and HEAD', async () => {
    const url = `${api.baseUrl}/v3/findings/${FINDING}/traces/${nextTraceId()}`
    const response = await fetch(url, { method: 'POST', body: '{}' })
    expect(response.status).toBe(405)
    expect(response.headers.get('allow')).toBe('GET, HEAD, OPTIONS')
  })
})
