import { afterAll, describe, expect, it } from 'vitest'
import type { Verdict } from '../../../../schemas/queues/source-maps.ts'
import { DAY_S, HOUR_MS, MIB } from '../../../../schemas/units.ts'
import { uploadKeys, verdictKey } from '../../../../shared/queue/upload-keys.ts'
import { type BuildRequest, OWNER, refusal, sha256, startBuildEdge } from '../../../support/services/build-edge.ts'
import { sharedServices } from '../../../support/services/shared-services.ts'
import { until } from '../../../support/until.ts'

const services = sharedServices()
const redisUrl = `${services.redisUrl}/12`

const build = await startBuildEdge(services, redisUrl)
afterAll(() => build.stop())
const { redis, edge, logLines, send, register, sign, framesOf, judge } = build

describe('a completion', () => {
  const complete = (slug: string, body: unknown, sent: BuildRequest = {}) =>
    send('POST', `/v3/releases/${slug}/source-maps/complete`, { body, ...sent })
  const record = async (slug: string, body: unknown) => {
    const text = await redis.get(uploadKeys({ ...OWNER, slug }).completion(sha256(JSON.stringify(body))))
    return text === null ? undefined : JSON.parse(text)
  }
  const done: Verdict = { ok: true, value: { ok: true, fileCount: 0 } }
  const body = { files: [], sourceFileCount: 7 }

  it('is answered with the verdict of its worker, and has a sequence number', async () => {
    const slug = await register()
    const before = Date.now() * 1_000
    const answer = complete(slug, body)
    const { frame, attributes } = await judge('completions', slug, done)
    expect(await answer).toMatchObject({ status: 200, body: { ok: true, fileCount: 0 } })
    expect(attributes).toEqual({ slug, attempt: expect.any(String), digest: sha256(JSON.stringify(body)) })
    expect(frame.body.toString()).toBe(JSON.stringify(body))
    const { sequence, ...kept } = await record(slug, body)
    expect(kept).toEqual({ version: 1, attempt: attributes.attempt })
    expect(sequence).toBeGreaterThanOrEqual(before - 1_000_000)
    expect(sequence).toBeLessThan(before + 60_000_000)
  })

  it('waits for the same verdict when repeated, and is answered at once after it is done', async () => {
    const slug = await register()
    const both = [complete(slug, body), complete(slug, body)]
    const { attributes } = await judge('completions', slug, done)
    for (const answer of await Promise.all(both)) expect(answer.body).toEqual({ ok: true, fileCount: 0 })
    expect(await framesOf('completions', slug)).toHaveLength(1)
    const key = uploadKeys({ ...OWNER, slug }).completion(sha256(JSON.stringify(body)))
    await redis.del(verdictKey(attributes.attempt))
    await redis.set(key, JSON.stringify({ ...(await record(slug, body)), fileCount: 5 }), 'EX', DAY_S)
    expect((await complete(slug, body)).body).toEqual({ ok: true, fileCount: 5 })
    expect(await framesOf('completions', slug)).toHaveLength(1)
  })

  it('has a higher sequence number than earlier ones, even if the clock went back (accept-completion.lua)', async () => {
    const slug = await register()
    const future = (Date.now() + HOUR_MS) * 1_000
    await redis.set(uploadKeys({ ...OWNER, slug }).sequence, future)
    const others = [1, 2].map(sourceFileCount => ({ files: [], sourceFileCount }))
    for (const other of others) {
      const answer = complete(slug, other)
      await until('the completion is accepted', () => record(slug, other))
      expect((await answer).status).toBe(503)
    }
    expect((await record(slug, others[0])).sequence).toBe(future + 1)
    expect((await record(slug, others[1])).sequence).toBe(future + 2)
    // Both are in progress, however long that takes.
    expect(await redis.ttl(uploadKeys({ ...OWNER, slug }).sequence)).toBe(-1)
    expect(await redis.ttl(uploadKeys({ ...OWNER, slug }).recorded)).toBe(-1)
  })

  it('is refused for an unknown release or an invalid slug', async () => {
    for (const slug of ['rel_unheard-of', 'v1', 'rel_%2F..']) {
      expect(await complete(slug, body)).toMatchObject(refusal(404, 'RELEASE_NOT_FOUND'))
      expect(await sign(slug, [])).toMatchObject(refusal(404, 'RELEASE_NOT_FOUND'))
    }
  })

  it('has at most 16 MiB of application/json', async () => {
    const slug = await register()
    const over = await complete(slug, Buffer.alloc(16 * MIB + 1, 0x20))
    expect(over).toMatchObject(refusal(413, 'REQUEST_INVALID', /16 MiB/))
    expect(await complete(slug, body, { type: 'text/plain' })).toMatchObject(refusal(415, 'REQUEST_INVALID'))
    const large = complete(slug, Buffer.alloc(16 * MIB, 0x20))
    const { frame } = await judge('completions', slug, done)
    expect(frame.body.length).toBe(16 * MIB)
    expect((await large).status).toBe(200)
  })
})

it('counts completions by outcome', async () => {
  const text = await edge.metrics()
  const count = (line: RegExp) => Number(line.exec(text)?.[1] ?? 0)
  for (const outcome of ['accepted', 'pending', 'repeated']) {
    expect(count(new RegExp(`penstock_completions_total\\{outcome="${outcome}".*} (\\d+)`)), outcome).toBeGreaterThan(0)
  }
})

it('logs no credential', () => {
  const text = logLines.join('')
  expect(text).not.toMatch(/sk_[0-9A-Za-z]{6}/)
  expect(text).not.toMatch(/X-Amz-|Bearer/)
})
