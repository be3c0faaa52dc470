import { afterAll, describe, expect, it } from 'vitest'
import { OWNER, refusal, startBuildEdge } from '../../../support/services/build-edge.ts'
import { sharedServices } from '../../../support/services/shared-services.ts'

const services = sharedServices()
const redisUrl = `${services.redisUrl}/12`

const build = await startBuildEdge(services, redisUrl)
afterAll(() => build.stop())
const { logLines, send, framesOf } = build

describe('a build report', () => {
  const report = (slug: string, body: unknown) => send('POST', `/v3/releases/${slug}/telemetry`, { body })

  it('is stored without its unknown fields', async () => {
    const body = { upload: 12, fileCount: 0, result: 'no_source_maps', preflight: 3 }
    expect(await report('rel_report', { ...body, newer: true })).toMatchObject({ status: 200, body: { ok: true } })
    const [frame] = await framesOf('build-reports', 'rel_report')
    expect(frame).toMatchObject({
      ...OWNER,
      contentType: 'application/json',
      attributes: '{"slug":"rel_report","isUnknown":true}',
    })
    expect(JSON.parse(frame?.body.toString() ?? '')).toEqual(body)
  })

  it.each<[string, string, unknown, RegExp]>([
    ['nothing', 'rel_x', {}, /at least one field/],
    ['only what is unknown', 'rel_x', { newer: 1 }, /at least one field/],
    ['a negative amount', 'rel_x', { upload: -1 }, /^upload /],
    ['a fraction', 'rel_x', { total: 1.5 }, /^total /],
    ['an unknown result', 'rel_x', { result: 'fine' }, /^result /],
    ['another slug', 'v1', { upload: 1 }, /^releaseSlug /],
  ])('refuses %s', async (_name, slug, body, message) => {
    expect(await report(slug, body)).toMatchObject(refusal(400, 'REQUEST_INVALID', message))
  })
})

it('logs no credential', () => {
  const text = logLines.join('')
  expect(text).not.toMatch(/sk_[0-9A-Za-z]{6}/)
  expect(text).not.toMatch(/X-Amz-|Bearer/)
})
