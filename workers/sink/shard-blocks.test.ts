import { describe, expect, it } from 'vitest'
import { encodePayload } from '../../shared/queue/payload-frame.ts'
import { formBatch } from './form-batch.ts'
import { NO_ROWS } from './row-batch.ts'
import { recordedShards } from './shard-blocks.ts'

const frames = Array.from({ length: 40 }, (_, i) => ({
  workspaceId: `ws_${i}`,
  surfaceId: 'srf_1',
  receivedAtMs: 0,
  contentType: 'application/json' as const,
  contentEncoding: 'identity' as const,
  attributes: '',
  body: Buffer.from('{}'),
}))
const store = { payload: async () => encodePayload(frames), giveBack() {} }
const deps = (shards: number) => ({ store, queue: 'traces' as const, kind: 'traces', activeShards: async () => shards })
const named = { batchId: 'batch', jobIds: ['a'], storedTables: [] as string[] }

async function unitsOf(shards: number, batch: (typeof named & { formed?: never }) | object): Promise<string[]> {
  const formed = await formBatch(deps(shards), { ...named, ...batch }, NO_ROWS)
  if (!formed.ok) throw new Error(formed.reason)
  return formed.batch.tables().map(({ table }) => table)
}

describe('the rows of a batch', () => {
  it('are divided between the active shards', async () => {
    expect((await unitsOf(3, {})).sort()).toEqual(['ingest_log@0/3', 'ingest_log@1/3', 'ingest_log@2/3'])
    expect(await unitsOf(1, {})).toEqual(['ingest_log'])
  })

  it('are divided as they were recorded, also when shards were added since', async () => {
    const formed = { decoder: 1, tables: { 'ingest_log@1/2': 20, 'ingest_log@0/2': 20 }, digest: 0, refused: {} }
    expect((await unitsOf(3, { formed })).sort()).toEqual(['ingest_log@0/2', 'ingest_log@1/2'])
    expect(await unitsOf(3, { formed: { ...formed, tables: { ingest_log: 40 } } })).toEqual(['ingest_log'])
    expect((await unitsOf(3, { storedTables: ['spans@0/2'] })).sort()).toEqual(['ingest_log@0/2', 'ingest_log@1/2'])
  })

  it('are inserted in the same order whenever the batch is formed', async () => {
    expect(await unitsOf(3, {})).toEqual(await unitsOf(3, {}))
    const orders = await Promise.all(
      Array.from({ length: 20 }, async (_, i) => (await unitsOf(3, { batchId: `batch ${i}` }))[0]),
    )
    expect(new Set(orders).size).toBe(3)
  })

  it('of a batch without inserts have no recorded shards', () => {
    expect(recordedShards(named)).toBeUndefined()
  })
})
