import { Agent, type RequestOptions, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { MIB } from '../../schemas/units.ts'
import { forEachConcurrently } from '../../shared/concurrency/for-each.ts'
import { meterProcesses, type ProcessUse } from '../measure/process-meter.ts'
import { type ReplayPayload, replayPayload } from '../payloads/replay-payload.ts'
import { summarize } from '../report/statistics.ts'
import type { BenchEdge } from '../services/start-product.ts'
import { type BenchS3, startBenchS3 } from '../services/start-s3.ts'
import { startInstallation, startStage } from '../services/start-stage.ts'
import type { BenchClickHouse } from '../services/start-stores.ts'
import { pollUntil } from '../support/poll-until.ts'
import { measureRounds, type Results, rowsOf, samplesOf, succeeded } from '../support/rounds.ts'
import type { Row, Scenario, ScenarioRun } from '../support/scenario.ts'

const IN_FLIGHT = 64
const CHUNK_BYTES = MIB
/** Number of different bodies. More would not change the figures and take longer to create. */
const BODIES = 8
const WARM_UP_CHUNKS = 16
const UPLOAD_DEADLINE_MS = 60_000
/** Number of refusals after which an upload fails. */
const REFUSED_MAX = 20
const STORED_DEADLINE_MS = 120_000
/** Every 20 ms, counting would take most of the CPU time of ClickHouse. */
const STORED_POLL_MS = 100
const REPLAY_PREFIX = 'replays/'
const DIRECT_PREFIX = 'direct/'

const PRODUCT = 'upload to stored and indexed'
const DIRECT = 'put directly'

/** Measures uploads of replay chunks. */
export const scenario: Scenario = {
  name: 'replay',
  question:
    `How many MB of replay chunks a second go from upload to stored object and row, ${IN_FLIGHT} uploads of 1 MiB in ` +
    'flight, against putting the same objects into the same S3 server directly?',
  run,
}

interface Contenders {
  readonly edge: BenchEdge
  readonly s3: BenchS3
  readonly clickhouse: BenchClickHouse
  readonly pids: Readonly<Record<string, number>>
  readonly bodies: readonly ReplayPayload[]
}

interface Uploaded {
  readonly bytes: number
  readonly refused: number
}

interface Measured extends Uploaded {
  readonly seconds: number
  /** Time until the last upload was acknowledged, for the product only. */
  readonly acceptedSeconds: number
  readonly use: Readonly<Record<string, ProcessUse>>
}

async function run(context: ScenarioRun) {
  const stage = await startStage(context)
  const s3 = await startBenchS3(context)
  const options = { queues: ['replay', 'replay-chunks'], edgeSettings: {}, workerSettings: s3.env }
  const { edge, pids: own } = await startInstallation(stage, options)
  const pids = { ...own, ...s3.pids }
  const bodies = Array.from({ length: BODIES }, () => replayPayload(CHUNK_BYTES))
  const contenders: Contenders = { edge, s3, clickhouse: stage.clickhouse, pids, bodies }

  const [rounds, chunks] = context.quick ? [1, 64] : [3, 96]
  // A warm-up, which is shorter and not counted.
  await measureProduct(contenders, 'warm-up', WARM_UP_CHUNKS)
  await measureDirect(contenders, 0, WARM_UP_CHUNKS)
  const measured = await measureRounds(context, {
    what: `${chunks} chunks`,
    rounds,
    contenders: [
      { name: PRODUCT, measure: (round: number) => measureProduct(contenders, `round-${round}`, chunks) },
      { name: DIRECT, measure: (round: number) => measureDirect(contenders, round, chunks) },
    ],
    describe: result => `${rate(result).toFixed(1)} MB/s`,
  })
  return {
    rows: toRows(measured.get(PRODUCT) ?? [], measured.get(DIRECT) ?? []),
    method: `a warm-up of ${WARM_UP_CHUNKS} chunks, ${rounds} rounds in which ${chunks} chunks are uploaded and as many are put directly, in rotating order`,
    notes: [
      'MB of compressed bytes. Time runs from the first request until every chunk has its row in ClickHouse, which is written after its object. The run fails if an object or row is missing.',
      '"Put directly" uploads the same bodies with the same concurrency and the same S3 client, from the process that uploads to the product.',
      'All processes share the cores of the machine. The S3 server of `npm start` is a simulation in JavaScript.',
    ],
    facts: stage.facts,
  }
}

async function measureProduct(contenders: Contenders, sessionId: string, chunks: number): Promise<Measured> {
  const { s3, clickhouse } = contenders
  const agent = new Agent({ keepAlive: true, maxSockets: IN_FLIGHT })
  const meter = meterProcesses(contenders.pids)
  try {
    meter.begin()
    const startedAt = performance.now()
    const { bytes, refused } = await inParallel(chunks, i => upload(contenders, agent, sessionId, i))
    const acceptedSeconds = (performance.now() - startedAt) / 1_000
    const stored = async () => (await countRows(clickhouse, sessionId)) >= chunks
    await pollUntil(`${chunks} chunks are stored and indexed`, STORED_DEADLINE_MS, stored, STORED_POLL_MS)
    const seconds = (performance.now() - startedAt) / 1_000
    const use = meter.end()
    await checkObjects(s3, REPLAY_PREFIX, { chunks, bytes })
    const rows = await countRows(clickhouse, sessionId)
    if (rows !== chunks) throw new Error(`${chunks} chunks have ${rows} rows`)
    return { bytes, refused, seconds, acceptedSeconds, use }
  } finally {
    agent.destroy()
    await empty(s3, REPLAY_PREFIX)
  }
}

async function measureDirect({ s3, bodies }: Contenders, round: number, chunks: number): Promise<Measured> {
  const meter = meterProcesses(s3.pids)
  meter.begin()
  const startedAt = performance.now()
  const { bytes, refused } = await inParallel(chunks, async i => {
    const { gzip } = bodyOf(bodies, i)
    const key = `${DIRECT_PREFIX}${round}/${i}.jsonl.gz`
    const outcome = await s3.objects.putIfAbsent(key, gzip, { contentType: 'application/gzip' })
    if (outcome !== 'stored') throw new Error(`${key} already exists`)
    return { bytes: gzip.length, refused: 0 }
  })
  const seconds = (performance.now() - startedAt) / 1_000
  const use = meter.end()
  await checkObjects(s3, DIRECT_PREFIX, { chunks, bytes })
  await empty(s3, DIRECT_PREFIX)
  return { bytes, refused, seconds, acceptedSeconds: seconds, use }
}

/** Runs `count` numbered uploads, `IN_FLIGHT` at a time, and returns the sum of their results. */
async function inParallel(count: number, work: (i: number) => Promise<Uploaded>): Promise<Uploaded> {
  let [bytes, refused] = [0, 0]
  const numbers = Array.from({ length: count }, (_, i) => i)
  await forEachConcurrently(numbers, { concurrency: IN_FLIGHT, stopOnFailure: true }, async i => {
    const done = await work(i)
    bytes += done.bytes
    refused += done.refused
  })
  return { bytes, refused }
}

const bodyOf = (bodies: readonly ReplayPayload[], i: number) => bodies[i % bodies.length] as ReplayPayload

/** Sends a chunk until it is acknowledged. Returns its size and the number of refusals. */
async function upload({ edge, bodies }: Contenders, agent: Agent, sessionId: string, i: number): Promise<Uploaded> {
  const { gzip } = bodyOf(bodies, i)
  const metadata = { windowId: 'window', segmentId: i, firstTs: 0, lastTs: 1 }
  const headers = {
    'content-type': 'application/octet-stream',
    'content-encoding': 'gzip',
    'content-length': gzip.length,
    'x-service-public-key': edge.publicKey,
    'x-replay-metadata': Buffer.from(JSON.stringify(metadata)).toString('base64'),
  }
  const path = `/v3/replay/upload/${sessionId}`
  for (let refused = 0; ; refused++) {
    const { status, body } = await post({ agent, port: edge.port, path, headers }, gzip)
    if (status === 200 && body.includes(REPLAY_PREFIX)) return { bytes: gzip.length, refused }
    if ((status !== 503 && status !== 429) || refused === REFUSED_MAX) {
      throw new Error(`an upload returned ${status}: ${body.slice(0, 200)}`)
    }
    await delay(1_000)
  }
}

function post(options: RequestOptions, sentBody: Buffer): Promise<{ status: number | undefined; body: string }> {
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(UPLOAD_DEADLINE_MS)
    const sent = request({ ...options, host: '127.0.0.1', method: 'POST', signal })
    sent.once('error', reject)
    sent.once('response', response => {
      text(response).then(body => resolve({ status: response.statusCode, body }), reject)
    })
    sent.end(sentBody)
  })
}

async function countRows({ client }: BenchClickHouse, sessionId: string): Promise<number> {
  const result = await client.query({
    query: 'SELECT count() AS n FROM replay_chunks WHERE session_id = {sessionId: String}',
    query_params: { sessionId },
    format: 'JSONEachRow',
  })
  const [row] = await result.json<{ n: number }>()
  return Number(row?.n)
}

async function checkObjects(s3: BenchS3, prefix: string, expected: { chunks: number; bytes: number }): Promise<void> {
  const found = { chunks: 0, bytes: 0 }
  for await (const page of s3.objects.list(prefix)) {
    found.chunks += page.length
    found.bytes += page.reduce((sum, { size }) => sum + size, 0)
  }
  if (found.chunks !== expected.chunks || found.bytes !== expected.bytes) {
    throw new Error(`${prefix} contains ${JSON.stringify(found)} instead of ${JSON.stringify(expected)}`)
  }
}

async function empty({ objects }: BenchS3, prefix: string): Promise<void> {
  const keys: string[] = []
  for await (const page of objects.list(prefix)) keys.push(...page.map(({ key }) => key))
  await objects.deleteMany(keys)
}

const rate = ({ bytes, seconds }: Measured) => bytes / 1e6 / seconds

function toRows(product: Results<Measured>, direct: Results<Measured>): Row[] {
  const row = (name: string, unit: string, of: (one: Measured) => number): Row => ({
    name,
    unit,
    samples: samplesOf(product, of),
  })
  return [
    ...rowsOf(product, () => [
      { ...row(PRODUCT, 'MB/s', rate), ratios: [{ to: DIRECT }], ...costs(succeeded(product)) },
      row('gzip for a second of the worker’s CPU time', 'MB/s', one => one.bytes / 1e6 / workerSeconds(one)),
      row('CPU time of the worker', 's per GB', one => workerSeconds(one) / (one.bytes / 1e9)),
      row('upload to acknowledged', 'MB/s', ({ bytes, acceptedSeconds }) => bytes / 1e6 / acceptedSeconds),
      row("the edge's peak memory", 'MB', ({ use }) => (use.edge?.peakMemoryBytes ?? 0) / 1e6),
    ]),
    ...rowsOf(direct, () => [
      { name: DIRECT, unit: 'MB/s', samples: samplesOf(direct, rate), ...costs(succeeded(direct)) },
    ]),
  ]
}

const workerSeconds = ({ use }: Measured) => use.worker?.cpuSeconds ?? 0

function costs(measured: readonly Measured[]): Pick<Row, 'cpu' | 'details'> {
  const secondsOf = (name: string) =>
    summarize(measured.map(({ use, bytes }) => (use[name]?.cpuSeconds ?? 0) / (bytes / 1e9))).median
  const names = Object.keys(measured[0]?.use ?? {})
  return {
    cpu: { per: 'GB', seconds: Object.fromEntries(names.map(name => [name, secondsOf(name)])) },
    details: { refused: `${measured.map(({ refused }) => refused).join(', ')} by round` },
  }
}
