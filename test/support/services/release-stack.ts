import { randomBytes } from 'node:crypto'
import type { Redis } from 'ioredis'
import { pino } from 'pino'
import { createDirectory } from '../../../shared/directory/directory.ts'
import { createReleaseStore, type ReleaseStore } from '../../../shared/directory/release-store.ts'
import { createObjectStore } from '../../../shared/object-store/object-store.ts'
import type { ObjectStore } from '../../../shared/object-store/types.ts'
import { connectConsumer } from '../../../shared/queue/redis.ts'
import { createReleaseClient, type ReleaseClient } from '../clients/release-client.ts'
import { issueKey, startEdge } from './edge.ts'
import { startPools, type TestPools } from './pools.ts'
import { type ServiceAddresses, s3Settings } from './services.ts'

/** An edge and the pools behind its build routes in this process, with their own workspace. */
export interface ReleaseStack {
  readonly workspaceId: string
  readonly surfaceId: string
  readonly redis: Redis
  readonly objects: ObjectStore
  readonly releases: ReleaseStore
  readonly pools: TestPools
  readonly client: ReleaseClient
  /** Returns the keys of all objects below a prefix. */
  listed(prefix: string): Promise<string[]>
  stop(): Promise<void>
}

/** Starts edge and pools; `redisUrl` names a database of Redis, which is emptied first. */
export async function startReleaseStack(services: ServiceAddresses, redisUrl: string): Promise<ReleaseStack> {
  const redis = connectConsumer(redisUrl, pino({ level: 'silent' }))
  await redis.flushdb()
  const { s3 } = services
  const objects = createObjectStore({ ...s3, requestTimeoutMs: 10_000 })
  const edge = await startEdge(redisUrl, s3Settings(s3))
  // Unique for this run, because other tests use the same object store.
  const [workspaceId, surfaceId] = [`ws_${randomBytes(6).toString('hex')}`, 'srf_1']
  const key = { kind: 'secret' as const, scopes: ['release:write'], workspaceId, surfaceId }
  const client = createReleaseClient(edge.baseUrl, await issueKey(createDirectory(redis), key))
  const pools = startPools(['source-maps', 'completions'], { ...services, redisUrl }, 'default')
  return {
    workspaceId,
    surfaceId,
    redis,
    objects,
    releases: createReleaseStore(redis),
    pools,
    client,
    async listed(prefix) {
      const keys: string[] = []
      for await (const page of objects.list(prefix)) keys.push(...page.map(object => object.key))
      return keys
    },
    async stop() {
      await pools.stop()
      await edge.stop()
      objects.close()
      redis.disconnect()
    },
  }
}
