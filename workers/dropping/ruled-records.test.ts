import { fromJson, toBinary } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { ExportTraceServiceRequestSchema } from '../../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import type { Dropping } from '../../schemas/records/dropping.ts'
import { encodePayload, type PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { TransientError } from '../../shared/runtime/errors.ts'
import { Scrubber } from '../../shared/scrubbing/scrubber.ts'
import { readTables } from '../../test/support/oracles/read-tables.ts'
import { exampleFrame } from '../../test/support/payloads/example-frame.ts'
import { createSpansBatch } from '../otlp/traces/spans.ts'
import { isSameFormation } from '../queue/payloads/batch-record.ts'
import { Batch } from '../sink/batch.ts'
import { formBatch } from '../sink/form-batch.ts'
import { NO_JOB_LIMITS } from '../sink/job-limits.ts'
import { countDropped, entryOf } from '../sink/log-entries.ts'
import { createKnownDropping } from './known-dropping.ts'
import { ruledRecords } from './ruled-records.ts'

const SOURCE = { queue: 'traces', kind: 'traces' } as const

function frameOf(workspaceId: string, names: readonly string[]): PayloadFrame {
  const spans = names.map(name => ({ traceId: 'AQEBAQEBAQEBAQEBAQEBAQ==', spanId: 'AQEBAQEBAQE=', name }))
  const request = fromJson(ExportTraceServiceRequestSchema, { resourceSpans: [{ scopeSpans: [{ spans }] }] })
  const body = Buffer.from(toBinary(ExportTraceServiceRequestSchema, request))
  return { ...exampleFrame('', { workspaceId }), body }
}

const record = (workspaceId: string, revision: number, name: string): Dropping => ({
  ...({ version: 1, workspaceId, revision, changedAt: '2026-01-01T00:00:00.000Z' } as const),
  rules: [{ name: `r-${revision}`, names: [name] }],
})

/** The rules of `ws_own` are those of `current`. */
function directoryOf(current: { rules: Dropping; earlier: Dropping[]; isDown?: boolean }) {
  return {
    async dropping(workspaceId: string) {
      if (current.isDown) throw new Error('down')
      return workspaceId === 'ws_own' ? current.rules : undefined
    },
    droppingAt: async (_: string, revision: number) => current.earlier.find(rules => rules.revision === revision),
  }
}

function rowsBy(directory: ReturnType<typeof directoryOf>) {
  const rows = createSpansBatch()
  const scrubber = new Scrubber({ revision: 5, rules: [] })
  const scrubbing = { of: async () => scrubber }
  return ruledRecords(rows, rows, { scrubbing, dropping: createKnownDropping(directory, () => 0) })
}

it('the log has the hashes of at most 20,000 dropped spans of a rule, and counts all', () => {
  const entry = entryOf(new Map(), 'traces', 'j', exampleFrame(''))
  for (let i = 0; i < 3; i++) countDropped(entry, new Map([['r', { count: 8_000, spans: Array(8_000).fill(i) }]]))
  expect([entry.dropped.get('r'), entry.droppedSpans.get('r')?.length]).toEqual([24_000, 20_000])
})

describe('the drop rules of a batch', () => {
  const frames = [frameOf('ws_own', ['first', 'second', 'third']), frameOf('ws_1', ['first', 'second'])]

  it('are recorded, and the batch that is formed again after their change has the same rows and counts', async () => {
    const current = { rules: record('ws_own', 7, 'first'), earlier: [] as Dropping[] }
    const batch = new Batch(SOURCE, rowsBy(directoryOf(current)), { id: 'b' })
    await batch.add({ jobId: 'j', lane: 'express', token: '' }, frames, 1, NO_JOB_LIMITS)
    const formed = batch.formation()
    expect(formed).toMatchObject({
      tables: { spans: 4, ingest_log: 2 },
      rules: { scrubbing: { ws_own: 5, ws_1: 5 }, dropping: { ws_own: 7 } },
    })

    current.earlier = [current.rules]
    current.rules = record('ws_own', 8, 'second')
    const payload = Buffer.from(encodePayload(frames))
    const store = { payload: async () => payload, giveBack() {} } as never
    const named = { batchId: 'b', jobIds: ['j'], storedTables: [], formed }
    const again = await formBatch({ ...SOURCE, store }, named, rowsBy(directoryOf(current)))
    if (!again.ok) throw new Error(again.reason)
    expect(isSameFormation(again.batch.formation(), formed)).toBe(true)
    const blocks = ({ tables }: Pick<Batch, 'tables'>) => readTables({ tables } as never)
    expect(blocks({ tables: () => again.batch.tables() })).toEqual(blocks({ tables: () => batch.tables() }))
    const [log] = blocks({ tables: () => batch.tables() }).get('ingest_log') ?? []
    expect(log?.dropped).toEqual([['r-7', 1n]])

    // Without the record, the current rules count, and the formations differ although as many rows are stored.
    const other = await formBatch({ ...SOURCE, store }, { ...named, formed: undefined }, rowsBy(directoryOf(current)))
    expect(other.ok && isSameFormation(other.batch.formation(), formed)).toBe(false)
  })

  it('are waited for, and a job that does not get them leaves nothing in the batch', async () => {
    const current = { rules: record('ws_own', 7, 'first'), earlier: [], isDown: true }
    const rows = rowsBy(directoryOf(current))
    const batch = new Batch(SOURCE, rows)
    const job = { jobId: 'j', lane: 'express', token: '' } as const
    await expect(batch.add(job, frames, 1, NO_JOB_LIMITS)).rejects.toThrow(TransientError)
    expect(rows.rules?.()).toEqual({})
    expect(rows.rows).toBe(0)
  })
})
