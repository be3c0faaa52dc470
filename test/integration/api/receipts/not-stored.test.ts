import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { entryOf, mapOf } from '../../../support/clients/release-client.ts'
import { until } from '../../../support/until.ts'
import {
  browse,
  build,
  database,
  expectOneRowEach,
  LINE,
  objects,
  release,
  settled,
  span,
  startWorkers,
  stopWorkers,
  uploadChunk,
} from './fixture.ts'

describe('a request that cannot be stored', () => {
  it('is dead-lettered with its reason and kept under the object key of the receipt', async () => {
    const body = gzipSync(Buffer.from([0x0a, 0x04, 0x12, 0x7f, 1, 2]))
    const headers = { 'content-type': 'application/x-protobuf', 'content-encoding': 'gzip' }
    const receipt = await settled(await browse('POST /drain/v1/traces', body, headers))
    expect(receipt).toMatchObject({ status: 'dead_lettered', reason: 'truncated' })
    expect(receipt.storedAt).toBeUndefined()
    const kept = await until('the request is kept', () => objects.get(receipt.objectKey ?? '', 1_000))
    expect(kept.body.equals(body)).toBe(true)
  })

  it('is found among the others of a batch that ClickHouse refuses', async () => {
    await stopWorkers()
    const names = Array.from({ length: 24 }, (_, i) => (i === 11 ? 'poison' : `good ${i}`))
    const sent = await Promise.all(names.map(name => browse('POST /drain/v1/traces', span(name))))
    const receipts = await Promise.all(sent.map(settled))
    for (const [i, receipt] of receipts.entries()) {
      if (names[i] !== 'poison') expect(receipt).toMatchObject({ status: 'stored' })
      // The message of ClickHouse is only for operators.
      else expect(receipt).toMatchObject({ status: 'dead_lettered', reason: 'refused_by_clickhouse' })
    }
    const [stored] = await database.rows<{ n: number }>("SELECT count() AS n FROM spans WHERE name LIKE 'good %'")
    expect(Number(stored?.n)).toBe(23)
    await expectOneRowEach(sent)
  })

  it('is dead-lettered if it is a replay chunk that conflicts with another, but not if it repeats one', async () => {
    expect(await settled(await uploadChunk(7))).toMatchObject({ status: 'stored' })
    expect(await settled(await uploadChunk(7))).toMatchObject({ status: 'stored' })
    const conflict = await settled(await uploadChunk(7, LINE + LINE))
    expect(conflict).toMatchObject({ status: 'dead_lettered', reason: expect.stringMatching(/^replay_conflict: /) })
    const kept = await until('the request is kept', () => objects.get(conflict.objectKey ?? '', 1_000))
    expect(kept.body.toString()).toBe(LINE + LINE)
  })

  it('has the receipt "refused" if its response refused it, and nothing is kept', async () => {
    startWorkers()
    const maps = `/v3/releases/${release}/source-maps`
    const noMap = await build(`PUT ${maps}/upload?path=c.map`, '{"version":2}')
    const files = [entryOf({ path: 'never sent', bytes: mapOf('x') })]
    const incomplete = await build(`POST ${maps}/complete`, JSON.stringify({ files, sourceFileCount: 1 }))
    for (const answer of [noMap, incomplete]) {
      expect(answer.status).toBe(400)
      const { message } = answer.body as { message: string }
      const receipt = await settled(answer)
      expect(receipt).toMatchObject({ status: 'refused', reason: `REQUEST_INVALID: ${message}` })
      expect(receipt.objectKey).toBeUndefined()
    }
  })
})
