import { describe, expect, it } from 'vitest'
import { insertNative } from '../../../../clickhouse/client.ts'
import { selectReleaseFrameShare } from '../../../../clickhouse/queries/releases/select-release.ts'
import { FindingFramesTable } from '../../../../clickhouse/tables/finding-frames-table.ts'
import { blocksOf } from '../../../../workers/sink/row-batch.ts'
import { type CountingProxy, startCountingProxy } from '../../../support/services/counting-proxy.ts'
import { until } from '../../../support/until.ts'
import { storeRelease } from '../../../support/workspaces/store-release.ts'
import {
  app,
  client,
  DATABASE,
  EXPECTED,
  framesOf,
  mapsHaveArrived,
  OWNER,
  opened,
  requests,
  resolvedFrames,
  send,
  services,
  stores,
  throwIn,
  uploaded,
  workers,
} from './fixture.ts'

describe('the frames of a finding', () => {
  it('wait while the object store is unavailable, and are resolved when it is back', async () => {
    const url = `https://cdn.test/away/${app.script}`
    await storeRelease(stores, OWNER, '4.0.0', [{ ...uploaded(), chunkUrl: url }])
    const gate: CountingProxy = await startCountingProxy(services.s3.endpoint)
    await gate.close()
    const pools = workers(['traces', 'exceptions', 'symbolication'], { ...services.s3, endpoint: gate.url })
    const variantId = await send({ stack: await throwIn(url), version: '4.0.0', service: 'away' })
    await until('the finding exists', async () => (await framesOf(variantId)) !== undefined)
    await until('the stack waits', async () => (await requests()).length > 0)
    expect((await framesOf(variantId))?.every(({ resolved }) => !resolved)).toBe(true)
    // Another worker replaces this one and finds the request.
    await pools.stop()
    opened.length = 0
    workers()
    expect((await resolvedFrames(variantId)).slice(0, 4)).toMatchObject(EXPECTED)
    await until('no request is left', async () => (await requests()).length === 0)
  })

  it('stay resolved when a worker without the maps stores its result last', async () => {
    const variantId = 'b'.repeat(32)
    await client.command({
      query: `INSERT INTO exceptions (workspace_id, surface_id, received_at, variant_id, finding_id, source)
              SELECT 'ws_1', 'srf_1', now(), unhex('${variantId}'), 'fnd_${'r'.repeat(26)}', 'log_record'`,
    })
    const place = { function: 'f', file: 'f.js', line: 1, column: 1 }
    const row = (file: string, sequence: number, resolvedFrameCount: number, occurredAtUnixNano: string) => ({
      ...OWNER,
      ...{
        variantId,
        serviceVersion: '1',
        releaseSlug: 'rel_rank',
        receivedAtMs: Date.now(),
        symbolicatedAtMs: Date.now(),
      },
      ...{ occurredAtUnixNano, sequence, frameCount: 3, resolvedFrameCount },
      frames: JSON.stringify([{ ...place, file, resolved: resolvedFrameCount > 0, generated: place }]),
    })
    // One table each, because they come from different workers.
    const rows = [row('second.ts', 5, 2, '2'), row('first.ts', 4, 3, '3'), row('none.js', 9, 0, '4')]
    for (const [i, stored] of rows.entries()) {
      const table = new FindingFramesTable()
      table.append(stored)
      for (const { table: name, columns, block } of blocksOf([table.buffer])) {
        await insertNative(client, { table: name, columns, block, deduplicationToken: `rank-${i}`, timeoutMs: 5_000 })
      }
    }
    const share = () =>
      selectReleaseFrameShare(client, { workspaceId: 'ws_1', releaseSlug: 'rel_rank' }, AbortSignal.timeout(5_000))
    for (let merged = 0; merged < 2; merged++) {
      expect((await framesOf(variantId))?.[0]?.file).toBe('second.ts')
      expect(await share()).toEqual({ resolvedFrames: 2, totalFrames: 3 })
      for (const table of ['finding_frames', 'release_frames']) {
        await client.command({ query: `OPTIMIZE TABLE ${DATABASE}.${table} FINAL` })
      }
    }
  })

  it('are resolved for every finding of the release, page by page, but not for older ones', async () => {
    const url = `https://cdn.test/many/${app.script}`
    const stack = await throwIn(url)
    const FINDINGS = 450
    await client.command({
      query: `INSERT INTO exceptions (workspace_id, surface_id, received_at, variant_id, finding_id, service_version, source, stacktrace)
              SELECT 'ws_1', 'srf_1', now() - if(number < ${FINDINGS}, number % 80000, 90000),
                     unhex(leftPad(toString(number), 32, '0')), 'fnd_' || leftPad(toString(number), 26, 'm'), '8.0.0', 'log_record', {stack: String}
              FROM numbers(${FINDINGS + 50})`,
      query_params: { stack },
    })
    const slug = await storeRelease(stores, OWNER, '8.0.0', [{ ...uploaded(), chunkUrl: url }])
    workers(['symbolication'])
    await mapsHaveArrived(slug, '8.0.0')
    const share = () =>
      selectReleaseFrameShare(client, { workspaceId: 'ws_1', releaseSlug: slug }, AbortSignal.timeout(5_000))
    await until('all frames are resolved', async () => (await share()).resolvedFrames >= 4 * FINDINGS)
    await until('no request is left', async () => (await requests()).length === 0)
    expect((await share()).resolvedFrames).toBe(4 * FINDINGS)
  })
})
