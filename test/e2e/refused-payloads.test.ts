import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type ClickHouseClient, createClickHouse } from '../../clickhouse/client.ts'
import { KIB, MIB } from '../../schemas/units.ts'
import { listDeadLetters } from '../support/oracles/list-dead-letters.ts'
import { type Stack, startStack } from '../support/services/stack.ts'
import { until } from '../support/until.ts'

/** Memory that an idle worker may need to inflate a payload to the limit of 64 MiB. */
const MEMORY_BOUND_BYTES = 400 * MIB

let stack: Stack
let clickhouse: ClickHouseClient

beforeAll(async () => {
  stack = await startStack()
  clickhouse = createClickHouse({
    url: stack.services.clickhouseUrl,
    database: 'penstock',
  })
})

afterAll(async () => {
  await clickhouse?.close()
  await stack?.stop()
})

interface Sent {
  name: string
  reason: string
  body: Buffer
  headers: Record<string, string>
}

const PROTOBUF = { 'content-type': 'application/x-protobuf' }
const JSON_TYPE = { 'content-type': 'application/json' }

/** Encodes one field of a request with the given content. */
function field(content: Buffer): Buffer {
  return Buffer.from(new BinaryWriter().tag(1, WireType.LengthDelimited).bytes(content).finish())
}

function refusedPayloads(): Sent[] {
  const bomb = field(Buffer.alloc(70 * MIB))
  const compressed = { gzip: gzipSync(bomb), deflate: deflateSync(bomb), zstd: zstdCompressSync(bomb) }
  return [
    ...Object.entries(compressed).map(([encoding, body]) => ({
      name: `${encoding} bomb`,
      reason: 'too_large_decompressed',
      body,
      headers: { ...PROTOBUF, 'content-encoding': encoding },
    })),
    {
      name: 'broken gzip',
      reason: 'bad_compression',
      body: Buffer.concat([Buffer.from([0x1f, 0x8b]), randomBytes(100)]),
      headers: { ...PROTOBUF, 'content-encoding': 'gzip' },
    },
    { name: 'truncated inside', reason: 'truncated', body: field(Buffer.from([0x12, 0x7f, 1, 2])), headers: PROTOBUF },
    { name: 'a group inside', reason: 'invalid_tag', body: field(Buffer.from([0x13, 0x14])), headers: PROTOBUF },
    { name: 'broken JSON', reason: 'invalid_json', body: Buffer.from('{"resourceSpans": [}'), headers: JSON_TYPE },
    {
      name: 'JSON of another shape',
      reason: 'invalid_json_value',
      body: Buffer.from('{"resourceSpans": "many"}'),
      headers: JSON_TYPE,
    },
    { name: 'no span', reason: 'no_records', body: field(Buffer.from([0x0a, 0])), headers: PROTOBUF },
  ]
}

it('refused payloads are kept as they were sent, with their reason, and do not affect others', async () => {
  const refused = refusedPayloads()
  const answers = await Promise.all([
    ...refused.map(sent => post(sent.body, sent.headers)),
    ...Array.from({ length: 50 }, (_, i) => post(goodSpan(i), JSON_TYPE)),
  ])
  expect(answers.every(status => status === 200)).toBe(true)

  const { workspaceId, surfaceId } = stack.secrets
  const kept = await until(
    'the refused payloads are kept',
    async () => {
      const letters = await listDeadLetters(stack.services.s3, `dead-letters/${workspaceId}/${surfaceId}/traces/`)
      return letters.length >= refused.length ? letters : undefined
    },
    { deadlineMs: 30_000 },
  )
  expect(kept.map(letter => letter.reason).sort()).toEqual(refused.map(sent => sent.reason).sort())
  expect(kept.map(letter => letter.body.toString('base64')).sort()).toEqual(
    refused.map(sent => sent.body.toString('base64')).sort(),
  )

  await until('the neighbours are stored', async () => (await count('SELECT count() AS n FROM spans')) === 50)
  const deadLettered = 'SELECT sum(arraySum(mapValues(dead_lettered))) AS n FROM ingest_log'
  await until('the log reports them', async () => (await count(deadLettered)) === refused.length)
  expect(await peakMemoryBytes(stack.workers.pid)).toBeLessThan(MEMORY_BOUND_BYTES)
})

async function post(body: Buffer, headers: Record<string, string>): Promise<number> {
  const response = await fetch(`${stack.ingestUrl}/drain/v1/traces`, {
    method: 'POST',
    headers: { ...headers, 'x-service-public-key': stack.secrets.publicKey },
    body: new Uint8Array(body),
  })
  await response.arrayBuffer()
  return response.status
}

function goodSpan(i: number): Buffer {
  const span = { traceId: randomBytes(16).toString('hex'), spanId: randomBytes(8).toString('hex'), name: `span ${i}` }
  return Buffer.from(JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans: [span] }] }] }))
}

async function count(query: string): Promise<number> {
  const result = await clickhouse.query({ query, format: 'JSONEachRow' })
  const [row] = await result.json<{ n: string }>()
  return Number(row?.n)
}

/** Returns the peak memory of a process; only Linux reports it, so elsewhere this checks nothing. */
async function peakMemoryBytes(pid: number): Promise<number> {
  if (process.platform !== 'linux') return 0
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) * KIB
}
