import { strictEqual } from 'node:assert'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { gunzipSync, gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { protobufFault } from '../../ingest/admission/protobuf-framing.ts'
import { decodeReplayMetadata } from '../../ingest/admission/replay-metadata.ts'
import { DEFAULT_SCRUBBING, VALUE_KINDS } from '../../schemas/records/scrubbing.ts'
import { MIB } from '../../schemas/units.ts'
import { freeBuffer } from '../../shared/memory/free-buffer.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { statedDecodedBytes } from '../../shared/queue/request-work.ts'
import { Scrubber } from '../../shared/scrubbing/scrubber.ts'
import { readStack } from '../../shared/stacks/read-stack.ts'
import { decompress } from '../../workers/decode/decompress.ts'
import { acceptJson, createJsonTranscoder } from '../../workers/otlp/json/transcode-json.ts'
import { createLogsBatch } from '../../workers/otlp/logs/logs.ts'
import { createMetricsBatch } from '../../workers/otlp/metrics/metrics.ts'
import type { OtlpBatch } from '../../workers/otlp/protobuf/otlp-batch.ts'
import { createSpansBatch } from '../../workers/otlp/traces/spans.ts'
import { inspectChunk } from '../../workers/replay/inspect-chunk.ts'
import { readCompletion } from '../../workers/source-maps/read-completion.ts'
import { sourceMapFault } from '../../workers/source-maps/store-single.ts'
import { parseMap, UnusableMap } from '../../workers/symbolication/tracing/parsed-map.ts'
import { bombs, chunkBombs } from '../support/hostile/bombs.ts'
import {
  compressed,
  exportCorpus,
  type FuzzedSignal,
  mutated,
  mutatedJson,
  mutatedMap,
  mutatedMetadata,
  REPLAY_CHUNKS,
} from '../support/hostile/fuzz-inputs.ts'
import { FuzzRun, pick, weighted } from '../support/hostile/fuzz-run.ts'
import { MemoryTrend, MOST_GROWTH } from '../support/hostile/memory-trend.ts'
import { mutatePayload } from '../support/payloads/mutate-payload.ts'
import type { Random } from '../support/payloads/scramble-message.ts'

const SIGNALS = ['traces', 'logs', 'metrics'] as const
/**
 * Most CPU time of one input, since a busy machine lets any input wait. The slowest one, a bomb, takes a second, and has taken
 * 6.5 on a slow machine.
 */
const HANG_MS = 30_000
/** Inputs until the code is compiled and the heap has its size, before the memory is sampled. */
const WARM_UP = 50_000
const SAMPLE_EVERY_MS = 250
const ROWS_BETWEEN_RESETS = 20_000
/** Part of the inputs after which the rows are written and forgotten though there are fewer. */
const RESET_PART = 0.01
const MOST_FAULTS = 5
const MOST_SHOWN_BYTES = 2_000

const STACKS = [
  'TypeError: x\n    at f (https://shop.example/a.js:1:20)\n    at async g@https://shop.example/b.js:3:4\n',
  'Error: x\n    at f (/a.js:1:2) {\n  [errors]: [\n    Error: y\n        at g (/b.js:3:4) {\n      [cause]: [Error: z]\n    }\n  ]\n}',
  'f@https://shop.example/a.js:1:20\nasync*g/<@https://shop.example/b.js line 3 > eval:1:2\nh@[native code]',
  '  + Exception Group Traceback (most recent call last):\n  |   File "/a.py", line 1, in f\n  | E: x\n  +-+---------------- 1 ----------------\n    | E: y',
  "/a.rb:1:in 'A#f': x (E)\n\tfrom /a.rb:2:in '<main>'\n/b.rb:3:in `g': y (F)\n",
  'PHP Fatal error:  Uncaught E: x in /a.php:1\nStack trace:\n#0 /a.php(2): f(1)\n#1 {main}\n\nNext F: y in /b.php:3\n#0 {main}',
].map(stack => Buffer.from(stack))
const COMPLETION = JSON.stringify({
  files: [{ path: 'a.js.map', hash: 'a'.repeat(64), debugId: '', chunkUrl: '~/a.js' }],
  sourceFileCount: 1,
})
/** Positions in generated code that are traced through a map. */
const POSITIONS = [
  [1, 1],
  [1, 20],
  [2, 1],
  [3, 9],
  [1_000_000, 1],
].map(([line = 1, column = 1]) => ({ line, column }))

/** A decoder and how inputs for it are made. Inputs of a higher weight are more frequent. */
interface Target {
  readonly kind: string
  readonly weight: number
  readonly make: (random: Random) => Buffer
  readonly run: (body: Buffer, random: Random) => unknown
}

it('no input makes a decoder throw, hang or keep memory', async () => {
  const run = new FuzzRun({ ofTime: 0.3, ofCount: 0.9 })
  const memory = new MemoryTrend(() => process.memoryUsage().rss)
  const { targets, explodeAll } = createTargets(run.seed)
  const choose = weighted(targets)
  const faults: string[] = []
  // The allocator keeps what the largest input needed once; only growth beyond that is a leak.
  await explodeAll()
  let slowestMs = 0
  let sampledAt = 0
  for (let input = run.next(); input !== undefined && faults.length < MOST_FAULTS; input = run.next()) {
    const { index, random } = input
    const { kind, make, run: decode } = choose(random())
    const body = make(random)
    const fault = (text: string) =>
      faults.push(`${kind}, seed ${run.seed}, input ${index}: ${text}\n${body.toString('hex', 0, MOST_SHOWN_BYTES)}`)
    const startedAt = cpuTimeMs()
    try {
      const result = decode(body, random)
      if (result instanceof Promise) await result
    } catch (error) {
      fault(String((error as Error).stack))
    }
    const tookMs = cpuTimeMs() - startedAt
    slowestMs = Math.max(slowestMs, tookMs)
    if (tookMs > HANG_MS) fault(`took ${tookMs} ms of CPU time`)
    run.ended(kind, '')
    const now = performance.now()
    if (index >= WARM_UP && now - sampledAt >= SAMPLE_EVERY_MS) {
      sampledAt = now
      await nextTurn()
      memory.sample()
    }
  }
  const counts = Object.entries(run.outcomes).map(([kind, outcomes]) => `${kind} ${outcomes['']}`)
  console.log(
    `seed ${run.seed}: ${run.done} inputs in this process in ${Math.round(run.elapsedMs / 1_000)} s, ` +
      `slowest ${Math.round(slowestMs)} ms, memory ${memory}: ${counts.join(', ')}`,
  )
  expect(faults).toEqual([])
  expect(run.done).toBeGreaterThan(0)
  if (memory.isLong) expect(memory.growth).toBeLessThanOrEqual(MOST_GROWTH)
}, 3_700_000)

function cpuTimeMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}

/** Rules of every kind, which walk through all of a message. */
const SCRUBBER = new Scrubber({
  revision: 1,
  rules: [
    ...DEFAULT_SCRUBBING,
    { name: 'values', values: [...VALUE_KINDS], action: 'hash' },
    { name: 'pattern', keys: ['http method'], fields: ['body'], pattern: '[A-Z]{3}', action: 'remove' },
  ],
  hashKey: Buffer.from('key'),
})

function scrubbing<B extends OtlpBatch>(batch: B): B {
  batch.scrubberOf = () => SCRUBBER
  return batch
}

/** Makes the decoders with what they keep from one request to the next, as in a worker. */
function createTargets(seed: number): { targets: readonly Target[]; explodeAll: () => Promise<void> } {
  const corpus = exportCorpus(seed)
  const transcoder = createJsonTranscoder()
  const batches = {
    traces: acceptJson('traces', scrubbing(createSpansBatch()), transcoder),
    logs: acceptJson('logs', scrubbing(createLogsBatch()), transcoder),
    metrics: acceptJson('metrics', scrubbing(createMetricsBatch()), transcoder),
  }
  const allBombs = bombs()
  const allChunkBombs = chunkBombs()

  function append(otlpSignal: FuzzedSignal, contentType: PayloadFrame['contentType'], body: Buffer, at = 1): void {
    const rows = batches[otlpSignal]
    const before = rows.rows
    const result = rows.append(frameOf(contentType, body), body)
    if (!result.ok && rows.rows !== before) throw new Error('rows of a refused request remain')
    if (rows.rows > ROWS_BETWEEN_RESETS || at < RESET_PART) {
      rows.tables()
      rows.reset()
      rows.shrink()
    }
  }

  async function explode({ otlpSignal, contentType, encoding, body }: (typeof allBombs)[number]): Promise<void> {
    const result = await decompress(body, encoding, 64 * MIB)
    if (result.ok) {
      append(otlpSignal, contentType, result.body)
      freeBuffer(result.body)
    }
    for (const rows of Object.values(batches)) {
      rows.reset()
      rows.shrink()
    }
  }

  async function decode(body: Buffer, random: Random): Promise<void> {
    const { encoding, body: sent } = compressed(body, random)
    statedDecodedBytes(encoding, sent, 64 * MIB)
    const result = await decompress(sent, encoding, MIB)
    if (result.ok) append('traces', 'application/x-protobuf', result.body)
  }

  const exports = SIGNALS.flatMap((otlpSignal): Target[] => [
    {
      kind: `${otlpSignal} in protobuf`,
      weight: 20,
      make: random => mutated(pick(corpus.protobuf[otlpSignal], random), random),
      run: (body, random) => append(otlpSignal, 'application/x-protobuf', body, random()),
    },
    {
      kind: `${otlpSignal} in JSON`,
      weight: 8,
      make: random => mutated(pick(corpus.json[otlpSignal], random), random),
      run: (body, random) => append(otlpSignal, 'application/json', body, random()),
    },
  ])
  const targets: Target[] = [
    ...exports,
    {
      kind: 'framing',
      weight: 8,
      make: random => mutated(pick(corpus.protobuf.logs, random), random),
      run: protobufFault,
    },
    {
      kind: 'stacks',
      weight: 4,
      make: random => mutatePayload(pick(STACKS, random), random),
      run: body => readStack(body.toString()),
    },
    {
      kind: 'replay metadata',
      weight: 4,
      make: random => Buffer.from(mutatedMetadata(random)),
      run: body => decodeReplayMetadata(body.toString('base64')),
    },
    { kind: 'compressed exports', weight: 2, make: random => pick(corpus.protobuf.traces, random), run: decode },
    {
      kind: 'replay chunks',
      weight: 1,
      make: random => mutated(pick(REPLAY_CHUNKS, random), random),
      run: (body, random) =>
        random() < 0.5 ? inspectAndParse(body, 'identity') : inspectAndParse(gzipSync(body, { level: 1 }), 'gzip'),
    },
    { kind: 'uploaded maps', weight: 1, make: mutatedMap, run: sourceMapFault },
    { kind: 'traced maps', weight: 2, make: mutatedMap, run: traceThrough },
    {
      kind: 'completions',
      weight: 1,
      make: random => Buffer.from(mutatedJson(COMPLETION, random)),
      run: readCompletion,
    },
    {
      kind: 'bombs',
      weight: 0.002,
      make: () => Buffer.alloc(0),
      run: (_, random) => explode(pick(allBombs, random)),
    },
    {
      kind: 'replay bombs',
      weight: 0.001,
      make: random => pick(allChunkBombs, random),
      run: body => inspectAndParse(body, 'gzip'),
    },
  ]
  return {
    targets,
    async explodeAll() {
      for (const bomb of allBombs) await explode(bomb)
      for (const bomb of allChunkBombs) await inspectAndParse(bomb, 'gzip')
    },
  }
}

/** Longer texts would take JSON.parse gigabytes. */
const PARSED_BYTES = MIB

/** Inspects a chunk. A chunk that passes must be lines that JSON.parse reads as objects, as many as were counted. */
async function inspectAndParse(...chunk: Parameters<typeof inspectChunk>): Promise<void> {
  const inspected = await inspectChunk(...chunk)
  if (!inspected.ok || inspected.facts.decompressedBytes > PARSED_BYTES) return
  const [body, encoding] = chunk
  const { mended } = inspected
  const lines = (mended ? gunzipSync(mended) : encoding === 'gzip' ? gunzipSync(body) : body).toString().split('\n')
  const events = lines.filter(line => line.trim() !== '').map(line => JSON.parse(line))
  strictEqual(events.filter(event => Object(event) === event && !Array.isArray(event)).length, events.length)
  strictEqual(events.length, inspected.facts.eventCount)
}

/** Parses a map and traces positions through it. A map may be unusable, but nothing else may be thrown. */
function traceThrough(body: Buffer): void {
  try {
    const map = parseMap(body.toString(), MIB)
    for (const position of POSITIONS) map.trace(position)
  } catch (error) {
    if (!(error instanceof UnusableMap)) throw error
  }
}

function frameOf(contentType: PayloadFrame['contentType'], body: Buffer): PayloadFrame {
  return {
    workspaceId: 'ws_1',
    surfaceId: 'srf_1',
    receivedAtMs: 1_790_000_000_123,
    contentType,
    contentEncoding: 'identity',
    attributes: '',
    body,
  }
}
