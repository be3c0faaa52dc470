import { gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { protobufFault } from '../../ingest/admission/protobuf-framing.ts'
import { decodeReplayMetadata } from '../../ingest/admission/replay-metadata.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { decompress } from '../../workers/decode/decompress.ts'
import { acceptJson, createJsonTranscoder } from '../../workers/otlp/json/transcode-json.ts'
import { createLogsBatch } from '../../workers/otlp/logs/logs.ts'
import { createMetricsBatch } from '../../workers/otlp/metrics/metrics.ts'
import { createSpansBatch } from '../../workers/otlp/traces/spans.ts'
import { inspectChunk } from '../../workers/replay/inspect-chunk.ts'
import { readCompletion } from '../../workers/source-maps/read-completion.ts'
import { sourceMapFault } from '../../workers/source-maps/store-single.ts'
import { parseStack } from '../../workers/symbolication/parse-stack.ts'
import {
  type Bomb,
  bombs,
  compressed,
  exportCorpus,
  type FuzzedSignal,
  mutated,
  mutatedJson,
  REPLAY_CHUNKS,
  SOURCE_MAPS,
} from '../support/hostile/fuzz-inputs.ts'
import { FuzzRun, growth, MOST_GROWTH, pick, TREND_SAMPLES } from '../support/hostile/fuzz-run.ts'
import { mutatePayload } from '../support/payloads/mutate-payload.ts'

const MIB = 1024 * 1024
const SIGNALS = ['traces', 'logs', 'metrics'] as const
/** Longest time of one input. On an idle machine the slowest one, a bomb, takes a second. */
const HANG_MS = 5_000
/** Inputs until the code is compiled and the heap has its size. */
const WARM_UP = 50_000
const ROWS_BETWEEN_RESETS = 20_000
const MOST_FAULTS = 5
const MOST_SHOWN_BYTES = 2_000

const STACK = Buffer.from(
  'TypeError: x\n    at f (https://shop.example/a.js:1:20)\n    at async g@https://shop.example/b.js:3:4\n',
)
const COMPLETION = JSON.stringify({
  files: [{ path: 'a.js.map', hash: 'a'.repeat(64), debugId: '', chunkUrl: '~/a.js' }],
  sourceFileCount: 1,
})

it('no input makes a decoder throw, hang or keep memory', async () => {
  const run = new FuzzRun({ ofTime: 0.3, ofCount: 0.9 }, () => process.memoryUsage().rss, WARM_UP)
  const { random, seed } = run
  const corpus = exportCorpus(seed)
  const transcoder = createJsonTranscoder()
  const batches = {
    traces: acceptJson('traces', createSpansBatch(), transcoder),
    logs: acceptJson('logs', createLogsBatch(), transcoder),
    metrics: acceptJson('metrics', createMetricsBatch(), transcoder),
  }
  const allBombs = bombs()
  const faults: string[] = []

  function append(otlpSignal: FuzzedSignal, contentType: PayloadFrame['contentType'], body: Buffer): void {
    const rows = batches[otlpSignal]
    const before = rows.rows
    const result = rows.append(frameOf(contentType, body), body)
    if (!result.ok && rows.rows !== before) throw new Error('rows of a refused request remain')
    if (rows.rows > ROWS_BETWEEN_RESETS || random() < 0.01) {
      rows.tables()
      rows.reset()
      rows.shrink()
    }
  }

  async function explode({ otlpSignal, encoding, body }: Bomb): Promise<void> {
    const result = await decompress(body, encoding, 64 * MIB)
    if (result.ok) append(otlpSignal, 'application/x-protobuf', result.body)
    for (const rows of Object.values(batches)) {
      rows.reset()
      rows.shrink()
    }
  }

  const sends: Record<string, { weight: number; make: () => Buffer; run: (body: Buffer) => unknown }> = {}
  for (const otlpSignal of SIGNALS) {
    sends[`${otlpSignal} in protobuf`] = {
      weight: 20,
      make: () => mutated(pick(corpus.protobuf[otlpSignal], random), random),
      run: body => append(otlpSignal, 'application/x-protobuf', body),
    }
    sends[`${otlpSignal} in JSON`] = {
      weight: 8,
      make: () => mutated(pick(corpus.json[otlpSignal], random), random),
      run: body => append(otlpSignal, 'application/json', body),
    }
  }
  const others: typeof sends = {
    framing: { weight: 8, make: () => mutated(pick(corpus.protobuf.logs, random), random), run: protobufFault },
    stacks: { weight: 4, make: () => mutatePayload(STACK, random), run: body => parseStack(body.toString()) },
    'replay metadata': {
      weight: 4,
      make: () => Buffer.from(mutatedJson('{"windowId":"w","segmentId":0,"firstTs":1,"lastTs":2}', random)),
      run: body => decodeReplayMetadata(body.toString('base64')),
    },
    'compressed exports': {
      weight: 2,
      make: () => pick(corpus.protobuf.traces, random),
      run: async body => {
        const { encoding, body: sent } = compressed(body, random)
        await decompress(sent, encoding, MIB)
      },
    },
    'replay chunks': {
      weight: 1,
      make: () => mutated(pick(REPLAY_CHUNKS, random), random),
      run: body =>
        random() < 0.5 ? inspectChunk(body, 'identity') : inspectChunk(gzipSync(body, { level: 1 }), 'gzip'),
    },
    'source maps': { weight: 1, make: () => mutated(pick(SOURCE_MAPS, random), random), run: sourceMapFault },
    completions: { weight: 1, make: () => Buffer.from(mutatedJson(COMPLETION, random)), run: readCompletion },
    bombs: { weight: 0.002, make: () => Buffer.alloc(0), run: () => explode(pick(allBombs, random)) },
  }
  Object.assign(sends, others)
  const choose = weighted(Object.entries(sends).map(([name, { weight }]) => [name, weight] as const))

  // The allocator keeps what the largest input needed once; only growth beyond that is a leak.
  for (const bomb of allBombs) await explode(bomb)
  let kind: string
  let slowestMs = 0
  do {
    kind = choose(random())
    const input = sends[kind]
    if (input === undefined) throw new Error('unreachable: a kind without an entry')
    const body = input.make()
    const startedAt = performance.now()
    try {
      const result = input.run(body)
      if (result instanceof Promise) await result
    } catch (error) {
      faults.push(`${kind}, seed ${seed}, input ${run.done}: ${(error as Error).stack}\n${shown(body)}`)
    }
    const tookMs = performance.now() - startedAt
    slowestMs = Math.max(slowestMs, tookMs)
    if (tookMs > HANG_MS) faults.push(`${kind}, seed ${seed}, input ${run.done}: took ${tookMs} ms\n${shown(body)}`)
  } while (run.next(kind) && faults.length < MOST_FAULTS)

  console.log(
    `seed ${seed}: ${run.done} inputs in this process, slowest ${Math.round(slowestMs)} ms, ` +
      `memory × ${growth(run.samples).toFixed(3)}: ${JSON.stringify(run.counts)}`,
  )
  expect(faults).toEqual([])
  if (run.samples.length >= TREND_SAMPLES) expect(growth(run.samples)).toBeLessThanOrEqual(MOST_GROWTH)
}, 3_600_000)

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

const shown = (body: Buffer) => body.subarray(0, MOST_SHOWN_BYTES).toString('hex')

/** Returns a function from [0, 1) to one of the names, by their weights. */
function weighted(names: readonly (readonly [string, number])[]): (at: number) => string {
  const total = names.reduce((sum, [, weight]) => sum + weight, 0)
  return at => {
    let rest = at * total
    for (const [name, weight] of names) {
      rest -= weight
      if (rest < 0) return name
    }
    return names[0]?.[0] ?? ''
  }
}
