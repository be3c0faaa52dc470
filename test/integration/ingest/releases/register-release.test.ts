import { afterAll, describe, expect, it } from 'vitest'
import { KIB } from '../../../../schemas/units.ts'
import { createReleaseStore } from '../../../../shared/directory/release-store.ts'
import { OWNER, refusal, SECRET, startBuildEdge } from '../../../support/services/build-edge.ts'
import { issueKey } from '../../../support/services/edge.ts'
import { sharedServices } from '../../../support/services/shared-services.ts'

const services = sharedServices()
const redisUrl = `${services.redisUrl}/12`

const build = await startBuildEdge(services, redisUrl)
afterAll(() => build.stop())
const { redis, directory, logLines, send } = build

describe('register', () => {
  it('returns the same slug for the same version, and takes the fields that are given again', async () => {
    const first = { version: '2.0.0', commit: 'abc', metadata: { branch: 'main', n: [1, null] } }
    const answer = await send('POST', '/v3/releases', { body: first })
    expect(answer).toMatchObject({ status: 200, body: { releaseSlug: expect.stringMatching(/^rel_[a-z2-7]{26}$/) } })
    const again = await send('POST', '/v3/releases', { body: { version: '2.0.0', commit: 'other' } })
    expect(again.body).toEqual(answer.body)
    expect((await send('POST', '/v3/releases', { body: { version: '2.0.0' } })).body).toEqual(answer.body)
    const slug = answer.body.releaseSlug as string
    expect(await createReleaseStore(redis).release('ws_1', slug)).toMatchObject({
      slug,
      ...OWNER,
      name: '2.0.0',
      commit: 'other',
      metadata: first.metadata,
    })
    const key = await issueKey(directory, { ...SECRET, surfaceId: 'srf_2' })
    const other = await send('POST', '/v3/releases', { key, body: first })
    expect(other.body.releaseSlug).not.toBe(slug)
  })

  it('is done once for an idempotency key, and another request with it conflicts', async () => {
    const headers = { 'idempotency-key': 'release "1"' }
    expect(await send('POST', '/v3/releases', { headers, body: { version: '3.0.0' } })).toMatchObject(
      refusal(400, 'REQUEST_INVALID', /^Idempotency-Key must have 1 to 255 visible/),
    )
    const ask = (body: object) => send('POST', '/v3/releases', { headers: { 'idempotency-key': 'release-1' }, body })
    const first = await ask({ version: '3.0.0', commit: 'a' })
    await send('POST', '/v3/releases', { body: { version: '3.0.0', commit: 'b' } })
    expect(await ask({ commit: 'a', version: '3.0.0' })).toMatchObject({ status: 200, body: first.body })
    const stored = await createReleaseStore(redis).release('ws_1', first.body.releaseSlug as string)
    expect(stored?.commit).toBe('b')
    expect(await ask({ version: '3.0.1' })).toMatchObject(
      refusal(409, 'IDEMPOTENCY_CONFLICT', /^Idempotency-Key was used with another request$/, 'operation'),
    )
  })

  const deep = `{"version":"1","metadata":${'{"a":'.repeat(30_000)}1${'}'.repeat(30_001)}`
  it.each<[string, unknown, string | undefined, number, RegExp]>([
    ['no version', {}, undefined, 400, /^version /],
    ['an empty version', { version: '' }, undefined, 400, /^version /],
    ['an unknown field', { version: '1', comit: 'x' }, undefined, 400, /comit/],
    ['metadata that is not an object', { version: '1', metadata: [] }, undefined, 400, /^metadata /],
    ['nesting without end', deep, undefined, 400, /nested/],
    ['large metadata', { version: '1', metadata: { a: 'x'.repeat(5_000) } }, undefined, 400, /^metadata .*4 KiB/],
    ['many values', `{"version":"1","metadata":{"a":[${'0,'.repeat(120_000)}0]}}`, undefined, 400, /^metadata .*4 KiB/],
    ['no JSON', '{', undefined, 400, /not valid JSON/],
    ['a form', 'version=1', 'application/x-www-form-urlencoded', 415, /content-type/],
    ['text', '{"version":"1"}', 'text/plain', 415, /content-type/],
    ['256 KiB and a byte', 'x'.repeat(256 * KIB + 1), undefined, 413, /256 KiB/],
  ])('refuses %s', async (_name, body, type, status, message) => {
    const answer = await send('POST', '/v3/releases', { body, ...(type && { type }) })
    expect(answer).toMatchObject(refusal(status, 'REQUEST_INVALID', message))
  })
})

it('names a few unknown fields of a registration, however many it has', async () => {
  const unknown = Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`k${i}`, 0]))
  const answer = await send('POST', '/v3/releases', { body: { version: '1', ...unknown } })
  const message = /^the body must not have the field "k0", "k1", "k2"$/
  expect(answer).toMatchObject(refusal(400, 'REQUEST_INVALID', message))
})

it('logs no credential', () => {
  const text = logLines.join('')
  expect(text).not.toMatch(/sk_[0-9A-Za-z]{6}/)
  expect(text).not.toMatch(/X-Amz-|Bearer/)
})
