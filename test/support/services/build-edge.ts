import { createHash } from 'node:crypto'
import type { Redis } from 'ioredis'
import { pino } from 'pino'
import { expect } from 'vitest'
import type { Verdict } from '../../../schemas/queues/source-maps.ts'
import type { SurfaceKey } from '../../../schemas/records/directory.ts'
import { createDirectory, type Directory } from '../../../shared/directory/directory.ts'
import { createObjectStore } from '../../../shared/object-store/object-store.ts'
import type { ObjectStore } from '../../../shared/object-store/types.ts'
import type { PayloadFrame } from '../../../shared/queue/payload-frame.ts'
import { connectConsumer } from '../../../shared/queue/redis.ts'
import { VERDICTS_CHANNEL, verdictKey } from '../../../shared/queue/upload-keys.ts'
import { queuedFrames } from '../queued-payloads.ts'
import { until } from '../until.ts'
import { issueKey, startEdge, type TestEdge } from './edge.ts'
import { type ServiceAddresses, s3Settings } from './services.ts'

/** A secret key that may write releases. */
export const SECRET: Partial<SurfaceKey> = { kind: 'secret', scopes: ['release:write'] }
/** The surface that the keys of these tests belong to. */
export const OWNER = { workspaceId: 'ws_1', surfaceId: 'srf_1' }

type BuildQueue = 'source-maps' | 'completions' | 'build-reports'

/** Response of a build operation. */
interface BuildResponse {
  status: number
  headers: Headers
  body: Record<string, unknown>
}

/** Differences of a request from the default of its operation. */
export interface BuildRequest {
  /** Secret key of the request, by default the key of the fixture. */
  key?: string
  headers?: Record<string, string>
  body?: unknown
  /** Content type, by default JSON; an empty text sends no content type. */
  type?: string
  /** Edge that receives the request, by default the edge of the fixture. */
  of?: TestEdge
}

/** An edge without workers, so that requests of a build stay in its queues and the test writes their verdicts. */
interface BuildEdge {
  readonly redis: Redis
  readonly directory: Directory
  readonly objects: ObjectStore
  readonly edge: TestEdge
  /** Settings with which a test starts another edge on the same object store. */
  readonly settings: Readonly<Record<string, string>>
  readonly logLines: readonly string[]
  readonly secretKey: string
  send(method: string, path: string, request?: BuildRequest): Promise<BuildResponse>
  /** Registers a release of a new version and returns its slug. */
  register(request?: BuildRequest): Promise<string>
  sign(slug: string, files: unknown[], request?: BuildRequest): Promise<BuildResponse>
  putPart(
    slug: string,
    path: string,
    part: number | string,
    body: Uint8Array,
    request?: BuildRequest,
  ): Promise<BuildResponse>
  /** Returns the payload frames that wait in a queue for a release. */
  framesOf(queue: BuildQueue, slug: string): Promise<PayloadFrame[]>
  /** Acts as the worker: waits for the request of a release and writes its verdict. */
  judge(
    queue: 'source-maps' | 'completions',
    slug: string,
    verdict: Verdict,
    isPublished?: boolean,
  ): Promise<{ frame: PayloadFrame; attributes: { attempt: string; [name: string]: unknown } }>
  /** Empties the database of Redis and issues a new secret key. */
  empty(): Promise<void>
  stop(): Promise<void>
}

/** Starts an edge for the operations of builds; `redisUrl` names a database of Redis, which is emptied first. */
export async function startBuildEdge({ s3 }: ServiceAddresses, redisUrl: string): Promise<BuildEdge> {
  const redis = connectConsumer(redisUrl, pino({ level: 'silent' }))
  await redis.flushdb()
  const directory = createDirectory(redis)
  let secretKey = await issueKey(directory, SECRET)
  const objects = createObjectStore({ ...s3, requestTimeoutMs: 10_000 })
  const logLines: string[] = []
  const logger = pino({ level: 'trace' }, { write: line => void logLines.push(line) })
  const settings = s3Settings(s3)
  const edge = await startEdge(redisUrl, { ...settings, VERDICT_TIMEOUT_MS: '1500', VERDICT_MAX_WAITING: '6' }, logger)
  let releaseCount = 0

  async function send(method: string, path: string, request: BuildRequest = {}): Promise<BuildResponse> {
    const { key = secretKey, body, type, headers, of = edge } = request
    const response = await fetch(of.baseUrl + path, {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        ...(type === '' ? {} : { 'content-type': type ?? 'application/json' }),
        ...headers,
      },
      ...(body === undefined
        ? {}
        : { body: typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body) }),
    })
    return {
      status: response.status,
      headers: response.headers,
      body: (await response.json()) as Record<string, unknown>,
    }
  }

  async function framesOf(queue: BuildQueue, slug: string): Promise<PayloadFrame[]> {
    const frames = await queuedFrames(redis, queue)
    return frames.filter(frame => JSON.parse(frame.attributes).slug === slug)
  }

  return {
    redis,
    directory,
    objects,
    edge,
    settings,
    logLines,
    get secretKey() {
      return secretKey
    },
    send,
    async register(request = {}) {
      const version = `1.0.${++releaseCount}`
      const answer = await send('POST', '/v3/releases', { body: { version }, ...request })
      expect(answer.status).toBe(200)
      return answer.body.releaseSlug as string
    },
    sign: (slug, files, request = {}) =>
      send('POST', `/v3/releases/${slug}/source-maps/sign`, { body: { files }, ...request }),
    putPart: (slug, path, part, body, request = {}) =>
      send('PUT', `/v3/releases/${slug}/source-maps?${new URLSearchParams({ part: String(part), path })}`, {
        type: 'application/octet-stream',
        body,
        ...request,
      }),
    framesOf,
    async judge(queue, slug, verdict, isPublished = true) {
      const [frame] = await until('the request is in the queue', async () => {
        const found = await framesOf(queue, slug)
        return found.length > 0 ? found : undefined
      })
      const attributes = JSON.parse((frame as PayloadFrame).attributes)
      await redis.set(verdictKey(attributes.attempt), JSON.stringify(verdict), 'EX', 120)
      if (isPublished) await redis.publish(VERDICTS_CHANNEL, attributes.attempt)
      return { frame: frame as PayloadFrame, attributes }
    },
    async empty() {
      await redis.flushdb()
      secretKey = await issueKey(directory, SECRET)
    },
    async stop() {
      await edge.stop()
      objects.close()
      redis.disconnect()
    },
  }
}

/** SHA-256 in hex. */
export const sha256 = (bytes: Uint8Array | string) => createHash('sha256').update(bytes).digest('hex')

/** Matches a response that refuses a request of a build. */
export const refusal = (status: number, code: string, message?: RegExp, service = 'frontier-buildtime') => ({
  status,
  body: { code, service, message: message ? expect.stringMatching(message) : expect.any(String) },
})

/** Every operation of secret keys, with enough of a request to pass its credential check, and the queue it fills. */
export const BUILD_OPERATIONS: readonly [method: string, path: string, queue: string | undefined][] = [
  ['POST', '/v3/releases', undefined],
  ['POST', '/v3/releases/rel_x/source-maps/sign', undefined],
  ['PUT', '/v3/releases/rel_x/source-maps?part=0&path=a', 'source-maps'],
  ['PUT', '/v3/releases/rel_x/source-maps/upload?path=a', 'source-maps'],
  ['POST', '/v3/releases/rel_x/source-maps/complete', 'completions'],
  ['POST', '/v3/releases/rel_x/telemetry', 'build-reports'],
]
