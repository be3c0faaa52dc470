import { randomBytes } from 'node:crypto'
import { originalPositionFor, sourceContentFor, TraceMap } from '@jridgewell/trace-mapping'
import { parse } from 'error-stack-parser-es'
import type { Redis } from 'ioredis'
import type { StackRequest } from '../../schemas/queues/symbolication.ts'
import { encodePayload, type PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { newJobId, queueKeys } from '../../shared/queue/queue.ts'
import type { createJobAdder } from '../../workers/queue/sweep.ts'
import { type BuildClient, type BuildFile, buildFile } from '../load/build-client.ts'
import { type SourceMapPayload, sourceMapPayload } from '../payloads/source-map-payload.ts'
import type { BenchClickHouse } from '../services/start-stores.ts'
import { pollUntil } from '../support/poll-until.ts'

/** Stack frames of each stack. */
export const FRAMES_OF_A_STACK = 20
/** Stacks of one job. A worker sends at most 500 for one batch of spans. */
const STACKS_OF_A_JOB = 200
const DEADLINE_MS = 60_000
const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567'

/** A release whose maps are uploaded, and its scripts, from which stacks are made. */
interface BenchRelease {
  readonly version: string
  readonly slug: string
  readonly scripts: readonly { readonly file: BuildFile; readonly map: SourceMapPayload }[]
}

/** Collaborators of the symbolication measurements. */
export interface SymbolicationDeps {
  readonly client: BuildClient
  readonly clickhouse: BenchClickHouse
  /** Redis of the queues. */
  readonly redis: Redis
  readonly jobs: Pick<ReturnType<typeof createJobAdder>, 'add'>
  readonly owner: { readonly workspaceId: string; readonly surfaceId: string }
}

/** Uploads maps of this size as a new release, and waits until the worker has processed it. */
export async function uploadRelease(deps: SymbolicationDeps, maps: number, bytes: number): Promise<BenchRelease> {
  const version = randomBytes(8).toString('hex')
  const slug = await deps.client.register(version)
  const scripts = Array.from({ length: maps }, (_, i) => {
    const name = `${version}/script-${i}.js`
    const map = sourceMapPayload(name, bytes)
    return { map, file: buildFile(`${name}.map`, map.json) }
  })
  const files = scripts.map(({ file }) => file)
  await deps.client.uploadSigned(slug, files)
  await deps.client.complete(slug, files)
  await pollUntil('nothing is left to be symbolicated', DEADLINE_MS, async () => {
    const { acceptedPayloads, donePayloads } = await deps.redis.hgetall(queueKeys('symbolication').flow)
    return acceptedPayloads !== undefined && acceptedPayloads === donePayloads
  })
  return { version, slug, scripts }
}

/** Creates stacks as V8 writes them, each from one script. */
export function makeStacks({ scripts }: BenchRelease, count: number): string[] {
  return Array.from({ length: count }, (_, i) => {
    const { file, map } = scripts[i % scripts.length] as BenchRelease['scripts'][number]
    const frames = Array.from({ length: FRAMES_OF_A_STACK }, (_, k) => {
      const { line, column } = map.calls[(i * 31 + k * 7) % map.calls.length] as SourceMapPayload['calls'][number]
      return `    at e${k} (${file.chunkUrl}:${line}:${column})`
    })
    return `TypeError: x is not a function\n${frames.join('\n')}`
  })
}

/** Sends these stacks to the worker, each for a different finding. Returns the seconds until their rows are stored. */
export async function symbolicate(
  deps: SymbolicationDeps,
  release: BenchRelease,
  stacks: readonly string[],
): Promise<number> {
  const { redis, jobs } = deps
  const frames = stacks.map(stacktrace => requestFrame(deps, release.version, stacktrace))
  const payloads: { jobId: string; frames: number; payload: Buffer }[] = []
  for (let i = 0; i < frames.length; i += STACKS_OF_A_JOB) {
    const page = frames.slice(i, i + STACKS_OF_A_JOB)
    payloads.push({ jobId: newJobId(), frames: page.length, payload: encodePayload(page) })
  }
  const before = await countResolved(deps, release)
  const startedAt = performance.now()
  const keys = queueKeys('symbolication')
  const transaction = redis.multi().hincrby(keys.flow, 'acceptedPayloads', frames.length)
  for (const { jobId, payload } of payloads) {
    transaction.set(keys.payload(jobId), payload).hincrby(keys.flow, 'acceptedBytes', payload.length)
  }
  await transaction.exec()
  await jobs.add('symbolication', payloads)
  const wanted = before + stacks.length * FRAMES_OF_A_STACK
  await pollUntil(
    `${wanted} frames are resolved`,
    DEADLINE_MS,
    async () => (await countResolved(deps, release)) >= wanted,
    5,
  )
  return (performance.now() - startedAt) / 1_000
}

function requestFrame({ owner }: SymbolicationDeps, serviceVersion: string, stacktrace: string): PayloadFrame {
  const receivedAtMs = Date.now()
  const findingId = `fnd_${Array.from(randomBytes(26), byte => BASE32[byte % 32]).join('')}`
  const occurredAtUnixNano = `${receivedAtMs}000000`
  const request: StackRequest = {
    ...{ kind: 'stack', findingId, serviceVersion, stacktrace, debugIds: {}, occurredAtUnixNano },
  }
  return {
    ...owner,
    receivedAtMs,
    contentType: 'application/json',
    contentEncoding: 'identity',
    attributes: '',
    body: Buffer.from(JSON.stringify(request)),
  }
}

async function countResolved({ clickhouse }: SymbolicationDeps, { slug }: BenchRelease): Promise<number> {
  const result = await clickhouse.client.query({
    query: 'SELECT sum(resolved_frame_count) AS n FROM release_frames WHERE release_slug = {slug: String}',
    query_params: { slug },
    format: 'JSONEachRow',
  })
  const [row] = await result.json<{ n: number }>()
  return Number(row?.n)
}

/**
 * Creates a symbolicator of the libraries alone, in this thread: it parses stacks, resolves their stack frames, and
 * writes JSON.
 */
export function createPlainSymbolicator({ scripts }: BenchRelease) {
  const tracers = new Map<string, TraceMap>()
  return (stacks: readonly string[]): number => {
    let resolved = 0
    for (const stack of stacks) {
      const frames = parse({ name: 'TypeError', message: '', stack }).map(frame => {
        const url = frame.fileName ?? ''
        let tracer = tracers.get(url)
        if (tracer === undefined) {
          const script = scripts.find(({ file }) => file.chunkUrl === url)
          tracer = new TraceMap(script?.map.json.toString() ?? '')
          tracers.set(url, tracer)
        }
        const place = originalPositionFor(tracer, {
          line: frame.lineNumber ?? 0,
          column: (frame.columnNumber ?? 0) - 1,
        })
        if (place.source === null) return frame
        resolved++
        const sourceLine = sourceContentFor(tracer, place.source)?.split('\n')[place.line - 1]?.trim()
        return { ...place, sourceLine, generated: frame }
      })
      JSON.stringify(frames)
    }
    return resolved
  }
}
