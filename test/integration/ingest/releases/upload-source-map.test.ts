import { afterAll, describe, expect, it } from 'vitest'
import { MIB } from '../../../../schemas/units.ts'
import { countAwakeMs } from '../../../support/count-awake-ms.ts'
import { type BuildRequest, OWNER, refusal, startBuildEdge } from '../../../support/services/build-edge.ts'
import { sharedServices } from '../../../support/services/shared-services.ts'

const services = sharedServices()
const redisUrl = `${services.redisUrl}/12`

const build = await startBuildEdge(services, redisUrl)
afterAll(() => build.stop())
const { edge, logLines, send, framesOf, judge } = build

describe('a whole map', () => {
  const upload = (slug: string, sent: BuildRequest = {}) =>
    send('PUT', `/v3/releases/${slug}/source-maps/upload?path=a.map`, { body: '{"version":3}', ...sent })

  it('is answered with the verdict of its worker', async () => {
    const answer = upload('rel_single-ok')
    const judged = await judge('source-maps', 'rel_single-ok', { ok: true, value: { objectKey: 'k' } })
    expect(await answer).toMatchObject({ status: 200, body: { objectKey: 'k' } })
    expect(judged.attributes).toMatchObject({ kind: 'single', slug: 'rel_single-ok', path: 'a.map' })
    expect(judged.frame).toMatchObject({ ...OWNER, contentType: 'application/json' })
    expect(judged.frame.body.toString()).toBe('{"version":3}')

    const refused = upload('rel_single-bad')
    await judge('source-maps', 'rel_single-bad', { ok: false, code: 'REQUEST_INVALID', message: 'not a source map' })
    expect(await refused).toMatchObject(refusal(400, 'REQUEST_INVALID', /^not a source map$/))
  })

  it('is answered as soon as its verdict is published', async () => {
    const awakeMs = countAwakeMs()
    for (const slug of ['rel_quick-1', 'rel_quick-2', 'rel_quick-3']) {
      const answer = upload(slug)
      await judge('source-maps', slug, { ok: true, value: { objectKey: 'k' } })
      expect((await answer).status).toBe(200)
    }
    // A request that waits for the next poll needs a second.
    expect(awakeMs()).toBeLessThan(1_000)
  })

  it('is answered even if the publication of its verdict is lost', async () => {
    const answer = upload('rel_single-quiet')
    await judge('source-maps', 'rel_single-quiet', { ok: true, value: { objectKey: 'k' } }, false)
    expect((await answer).status).toBe(200)
  })

  it('is answered with 503 when there is no verdict in time', async () => {
    const answer = await upload('rel_single-late')
    expect(answer).toMatchObject(refusal(503, 'INGEST_INFRA_UNAVAILABLE', /still in progress/))
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
  })

  it('is refused with backpressure when too many wait', async () => {
    const answers = await Promise.all(Array.from({ length: 5 }, () => upload('rel_single-many')))
    const codes = answers.map(answer => answer.body.code).sort()
    expect(codes).toEqual([...Array(2).fill('INGEST_BACKPRESSURE'), ...Array(3).fill('INGEST_INFRA_UNAVAILABLE')])
    expect(answers.find(answer => answer.status === 429)?.body.service).toBe('frontier-buildtime')
    expect(await framesOf('source-maps', 'rel_single-many')).toHaveLength(3)
  })

  it('is refused at once when it is malformed', async () => {
    const path = '/v3/releases/rel_x/source-maps/upload'
    expect(await send('PUT', `${path}?path=../a`, { body: '{}' })).toMatchObject(refusal(400, 'REQUEST_INVALID'))
    expect(await send('PUT', path, { body: '{}' })).toMatchObject(refusal(400, 'REQUEST_INVALID', /^path is required/))
    expect(await send('PUT', `${path}?path=a`, { body: '{}', type: 'text/plain' })).toMatchObject(
      refusal(415, 'REQUEST_INVALID'),
    )
    const over = await fetch(`${edge.baseUrl}${path}?path=a`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${build.secretKey}`, 'content-type': 'application/json' },
      body: Buffer.alloc(64 * MIB + 1, 0x20),
    })
    expect(over.status).toBe(413)
    expect(await over.json()).toMatchObject({ code: 'RELEASE_SIGN_FILE_TOO_LARGE', service: 'frontier-buildtime' })
  })

  it('is enqueued with 64 MiB', async () => {
    const body = Buffer.alloc(64 * MIB, 0x20)
    const answer = upload('rel_single-large', { body })
    const { frame } = await judge('source-maps', 'rel_single-large', { ok: true, value: { objectKey: 'k' } })
    expect(frame.body.length).toBe(64 * MIB)
    expect((await answer).status).toBe(200)
    await build.empty()
  })
})

it('counts waits for a verdict by outcome', async () => {
  const text = await edge.metrics()
  const count = (line: RegExp) => Number(line.exec(text)?.[1] ?? 0)
  for (const outcome of ['found', 'not_found']) {
    expect(
      count(new RegExp(`penstock_verdict_wait_seconds_count\\{.*outcome="${outcome}".*} (\\d+)`)),
      outcome,
    ).toBeGreaterThan(0)
  }
})

it('logs no credential', () => {
  const text = logLines.join('')
  expect(text).not.toMatch(/sk_[0-9A-Za-z]{6}/)
  expect(text).not.toMatch(/X-Amz-|Bearer/)
})
