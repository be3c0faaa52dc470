import { createHash } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { setImmediate as otherEvents } from 'node:timers/promises'
import { gunzipSync } from 'node:zlib'
import { pino } from 'pino'
import { KIB, MIB } from '../../schemas/units.ts'
import { forEachConcurrently } from '../../shared/concurrency/for-each.ts'
import { type Inspected, inspectChunk } from '../../workers/replay/inspect-chunk.ts'
import { JsonLinesScanner } from '../../workers/replay/json-lines.ts'
import { LineChecker } from '../../workers/replay/simd/line-checker.ts'
import { QuickInspector } from '../../workers/replay/simd/quick-inspector.ts'
import { startInspection } from '../../workers/replay/threads/inspection-threads.ts'
import { type ReplayPayload, replayPayload } from '../payloads/replay-payload.ts'
import { summarize } from '../report/statistics.ts'
import { rotated } from '../support/rounds.ts'
import type { Row, Scenario, ScenarioContext } from '../support/scenario.ts'

const CHUNK_BYTES = MIB
/** Number of different bodies. Together they are larger than the caches of a core. */
const BODIES = 8
const PIECE_BYTES = 128 * KIB

const PROVE = 'inflate, prove every line, hash'
const EXACT = 'inflate, check every line exactly, hash'
const PARSE = 'inflate, JSON.parse of every line'

/** Measures the check of replay chunks without the rest of a worker. */
export const scenario: Scenario = {
  name: 'replay-check',
  question: 'How many MB of gzipped replay chunks does one core check, and which parts of the check take the time?',
  run,
}

interface Chunk extends ReplayPayload {
  readonly text: Buffer
}

/** A part of the check, or another way to do it. */
interface Work extends Pick<Row, 'name' | 'ratios'> {
  readonly run: (chunk: Chunk) => unknown
}

const WORK: readonly Work[] = [
  { name: PROVE, run: prove, ratios: [{ to: EXACT }, { to: PARSE }] },
  { name: EXACT, run: checkExactly },
  { name: PARSE, run: ({ gzip }) => parseLines(gunzipSync(gzip)) },
  { name: 'inflate alone', run: ({ gzip }) => gunzipSync(gzip) },
  { name: 'prove every line alone', run: proveLines },
  { name: 'check every line exactly, alone', run: scan },
  { name: 'SHA-256 of the inflated bytes', run: ({ text }) => createHash('sha256').update(text).digest() },
  { name: 'SHA-256 of the bytes as sent', run: ({ gzip }) => createHash('sha256').update(gzip).digest() },
]

async function run(context: ScenarioContext) {
  const chunks = Array.from({ length: BODIES }, (): Chunk => {
    const payload = replayPayload(CHUNK_BYTES)
    return { ...payload, text: gunzipSync(payload.gzip) }
  })
  const [rounds, turnMs] = context.quick ? [2, 300] : [5, 1_000]
  const samples = new Map(WORK.map(work => [work, [] as number[]]))
  for (let round = 0; round <= rounds; round++) {
    context.progress(round === 0 ? 'warm-up' : `round ${round} of ${rounds}`)
    for (const work of rotated(WORK, round)) {
      const rate = await measure(work, chunks, turnMs)
      if (round > 0) samples.get(work)?.push(rate)
    }
  }
  const [first] = chunks
  const rows = [...samples].map(
    ([{ run: _run, ...work }, rates]): Row => ({ ...work, unit: 'MB/s a core', samples: rates }),
  )
  return {
    rows: [...rows, ...(await measureThreads(context, chunks))],
    method: `1 warm-up turn each, ${rounds} rounds in which each part takes a turn of ${turnMs / 1_000} s of CPU time, in rotating order`,
    notes: [
      `MB of gzip in a second of CPU time of all threads. ${BODIES} chunks of about 1 MiB that inflate to about ${((first?.text.length ?? 0) / 1e6).toFixed(1)} MB.`,
      'For the exact check, zlib inflates on threads of its own. With threads, the rate is by time and not by CPU time.',
      'The parts take turns in one process, so the compiled code and the garbage of one can affect another.',
    ],
  }
}

/** Measures by the CPU time of the process, because zlib may inflate on threads of its own. */
async function measure({ run: work }: Work, chunks: readonly Chunk[], turnMs: number): Promise<number> {
  globalThis.gc?.()
  const startedAt = process.cpuUsage()
  let bytes = 0
  for (let i = 0, elapsedMs = 0; ; i++) {
    const chunk = chunks[i % chunks.length] as Chunk
    await work(chunk)
    bytes += chunk.gzip.length
    const { user, system } = process.cpuUsage(startedAt)
    elapsedMs = (user + system) / 1_000
    if (elapsedMs >= turnMs) return bytes / 1e6 / (elapsedMs / 1_000)
    // Lets an interruption be handled.
    if (i % chunks.length === 0) await otherEvents()
  }
}

const threadsOf = (count: number) => `on ${count} ${count === 1 ? 'thread' : 'threads'}`

/** Measures how the check grows with its threads. The numbers of threads take turns. */
async function measureThreads(context: ScenarioContext, chunks: readonly Chunk[]): Promise<Row[]> {
  const counts = [1, 2, 4].filter(count => count <= Math.max(1, availableParallelism()))
  const [rounds, chunksOfThread] = context.quick ? [2, 8] : [5, 32]
  const measured = new Map(counts.map(threads => [threads, { rates: [] as number[], cpu: [] as number[] }]))
  for (let round = 0; round <= rounds; round++) {
    context.progress(round === 0 ? 'threads, warm-up' : `threads, round ${round} of ${rounds}`)
    for (const threads of rotated(counts, round)) {
      const { rate, cpuSeconds } = await measureOn(threads, chunks, chunksOfThread)
      if (round === 0) continue
      measured.get(threads)?.rates.push(rate)
      measured.get(threads)?.cpu.push(cpuSeconds)
    }
  }
  return [...measured].map(
    ([threads, { rates, cpu }]): Row => ({
      name: threadsOf(threads),
      unit: 'MB/s',
      samples: rates,
      ...(threads > 1 && { ratios: [{ to: threadsOf(1) }] }),
      cpu: { per: 'GB', seconds: { 'all threads': summarize(cpu).median } },
    }),
  )
}

async function measureOn(threads: number, chunks: readonly Chunk[], chunksOfThread: number) {
  const inspection = startInspection(pino({ level: 'silent' }), { threads })
  const inspect = async (count: number) => {
    const all = Array.from({ length: count }, (_, i) => chunks[i % chunks.length] as Chunk)
    await forEachConcurrently(all, { concurrency: 2 * threads, stopOnFailure: true }, async ({ gzip, events }) => {
      expectEvents(await inspection.inspect(gzip, 'gzip', 'express'), events)
    })
    return all.reduce((sum, { gzip }) => sum + gzip.length, 0)
  }
  try {
    // Starts the threads, and lets each compile its code.
    await inspect(2 * threads)
    const cpu = process.cpuUsage()
    const startedAt = performance.now()
    const bytes = await inspect(chunksOfThread * threads)
    const seconds = (performance.now() - startedAt) / 1_000
    const { user, system } = process.cpuUsage(cpu)
    return { rate: bytes / 1e6 / seconds, cpuSeconds: (user + system) / 1e6 / (bytes / 1e9) }
  } finally {
    await inspection.close()
  }
}

const quick = new QuickInspector()
const checker = new LineChecker()

function prove({ gzip, events }: Chunk): void {
  expectEvents(quick.inspect(gzip, 'gzip'), events)
}

async function checkExactly({ gzip, events }: Chunk): Promise<void> {
  expectEvents(await inspectChunk(gzip, 'gzip'), events)
}

function expectEvents(inspected: Inspected | undefined, events: number): void {
  if (!inspected?.ok || inspected.facts.eventCount !== events) throw new Error('a chunk was not read as it was made')
}

function proveLines({ text, events }: Chunk): void {
  if (checker.check(text)?.events !== events) throw new Error('a text was not read as it was made')
}

function scan({ text, events }: Chunk): void {
  const scanner = new JsonLinesScanner()
  for (let at = 0; at < text.length; at += PIECE_BYTES) scanner.add(text.subarray(at, at + PIECE_BYTES))
  if (!scanner.end() || scanner.events !== events) throw new Error('a text was not read as it was made')
}

function parseLines(text: Buffer): void {
  for (const line of text.toString().split('\n')) if (line !== '') JSON.parse(line)
}
