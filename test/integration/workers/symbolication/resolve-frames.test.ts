import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { selectReleaseFrameShare } from '../../../../clickhouse/queries/releases/select-release.ts'
import { until } from '../../../support/until.ts'
import { storeRelease } from '../../../support/workspaces/store-release.ts'
import {
  app,
  client,
  EXPECTED,
  mapsHaveArrived,
  OWNER,
  resolvedFrames,
  send,
  storedFrames,
  stores,
  throwIn,
  uploaded,
  workers,
} from './fixture.ts'

describe('the frames of a finding', () => {
  it('are resolved if the maps of the release are stored', async () => {
    const url = `https://cdn.test/one/${app.script}`
    const slug = await storeRelease(stores, OWNER, '1.0.0', [{ ...uploaded(), chunkUrl: url }])
    const named = { commit: '4f2a9c1', metadata: { repository: 'https://github.com/acme/shop' } }
    await stores.releases.register({
      version: 1,
      slug,
      ...OWNER,
      name: '1.0.0',
      ...named,
      createdAt: new Date().toISOString(),
    })
    workers()
    const stack = await throwIn(url)
    const variantId = await send({ stack, version: '1.0.0', service: 'one' })
    const frames = await resolvedFrames(variantId)
    expect(frames.slice(0, 4)).toMatchObject(EXPECTED)
    expect(frames[0]).toMatchObject({
      sourceLine: "throw new UnknownPriceError('no price of ' + sku + ' in ' + PRICES.size)",
      generated: { file: url, line: 1 },
    })
    const { line = 0, sourceLine, sourceLines: { from, lines } = { from: 0, lines: [] } } = frames[0] ?? {}
    expect(lines[line - from]?.trim()).toBe(sourceLine)
    const source = `https://github.com/acme/shop/blob/4f2a9c1/${EXPECTED[0]?.file}#L${line}`
    expect(frames[0]?.sourceUrl).toBe(source)
    // The source ends three lines below.
    expect([line - from, lines.length]).toEqual([5, 9])
    // The frames of the test follow those of the app.
    expect(frames.slice(4).every(frame => !frame.resolved)).toBe(true)
  })

  it('are those of the script until the maps arrive, and are then resolved', async () => {
    const url = `https://cdn.test/late/${app.script}`
    workers()
    const variantId = await send({ stack: await throwIn(url), version: '2.0.0', service: 'late' })
    const before = await storedFrames(variantId)
    expect(before[0]).toMatchObject({ resolved: false, file: url, line: 1 })
    expect(before[0]).not.toHaveProperty('sourceLine')
    const slug = await storeRelease(stores, OWNER, '2.0.0', [{ ...uploaded(), chunkUrl: url }])
    const share = { workspaceId: 'ws_1', releaseSlug: slug }
    const total = (await selectReleaseFrameShare(client, share, AbortSignal.timeout(5_000))).totalFrames
    expect(total).toBeGreaterThanOrEqual(4)
    expect(await selectReleaseFrameShare(client, share, AbortSignal.timeout(5_000))).toMatchObject({
      resolvedFrames: 0,
    })
    await mapsHaveArrived(slug, '2.0.0')
    expect((await resolvedFrames(variantId)).slice(0, 4)).toMatchObject(EXPECTED)
    // Its view may be written after the frames.
    await until('the share of the release is known', async () => {
      const { resolvedFrames: resolved, totalFrames } = await selectReleaseFrameShare(
        client,
        share,
        AbortSignal.timeout(5_000),
      )
      return resolved === 4 && totalFrames === total
    })
  })

  it('are resolved by the debug ids of the client, whatever the names of its scripts', async () => {
    const debugId = randomUUID()
    const slug = await storeRelease(stores, OWNER, 'build-77', [{ ...uploaded(), debugId: debugId.toUpperCase() }])
    workers()
    await mapsHaveArrived(slug, 'build-77')
    await until('the debug id is known', async () => {
      const result = await client.query({ query: `SELECT 1 FROM source_maps WHERE debug_id = '${debugId}'` })
      return (await result.text()).includes('"rows": 1')
    })
    const url = 'https://proxy.test/scripts/0.js?v=3'
    const debugIds = { [url]: debugId.replaceAll('-', '') }
    const variantId = await send({ stack: await throwIn(url), service: 'by-id', debugIds })
    expect((await resolvedFrames(variantId)).slice(0, 4)).toMatchObject(EXPECTED)
  })

  it('are resolved by debug id when the maps arrive later', async () => {
    const debugId = randomUUID()
    const url = 'https://proxy.test/scripts/1.js'
    workers()
    const stack = await throwIn(url)
    const variantId = await send({ stack, version: 'web-9', service: 'by-late-id', debugIds: { [url]: debugId } })
    expect((await storedFrames(variantId))[0]?.resolved).toBe(false)
    const slug = await storeRelease(stores, OWNER, 'build-78', [{ ...uploaded(), debugId }])
    await mapsHaveArrived(slug, 'build-78')
    expect((await resolvedFrames(variantId)).slice(0, 4)).toMatchObject(EXPECTED)
  })

  it('are never resolved by maps of another workspace or surface', async () => {
    const url = `https://cdn.test/foreign/${app.script}`
    const debugId = randomUUID()
    const foreign = [{ ...uploaded(), chunkUrl: url, debugId }]
    workers()
    for (const owner of [
      { workspaceId: 'ws_2', surfaceId: 'srf_1' },
      { workspaceId: 'ws_1', surfaceId: 'srf_2' },
    ]) {
      const slug = await storeRelease(stores, owner, '3.0.0', foreign)
      await mapsHaveArrived(slug, '3.0.0', owner)
    }
    await until('the maps of both are in the index', async () => {
      const result = await client.query({ query: `SELECT 1 FROM source_maps WHERE debug_id = '${debugId}'` })
      return (await result.text()).includes('"rows": 2')
    })
    const thrown = { stack: await throwIn(url), version: '3.0.0', service: 'foreign', debugIds: { [url]: debugId } }
    const frames = await storedFrames(await send(thrown))
    expect(frames.some(frame => frame.resolved)).toBe(false)
    // The same exception of the surface that owns the maps is resolved by them.
    const own = await send(thrown, { workspaceId: 'ws_1', surfaceId: 'srf_2' })
    expect((await resolvedFrames(own)).slice(0, 4)).toMatchObject(EXPECTED)
  })
})
