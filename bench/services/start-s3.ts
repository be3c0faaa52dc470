import { join } from 'node:path'
import { freePort } from '../../deploy/local/ports.ts'
import { startS3 } from '../../deploy/local/stores/s3.ts'
import { createObjectStore } from '../../shared/object-store/object-store.ts'
import type { ObjectStore } from '../../shared/object-store/types.ts'
import type { ScenarioContext } from '../support/scenario.ts'

/** A running S3 server. */
export interface BenchS3 {
  /** Processes of the server by name. */
  readonly pids: Readonly<Record<string, number>>
  /** Environment variables for the product's processes. */
  readonly env: Readonly<Record<string, string>>
  readonly objects: ObjectStore
}

/** Starts the S3 server of `npm start`, empty. */
export async function startBenchS3(context: ScenarioContext): Promise<BenchS3> {
  const access = { bucket: 'penstock', accessKeyId: 'bench-access', secretAccessKey: 'bench-secret' }
  const service = await startS3({ ...access, dir: join(context.dir, 's3'), port: await freePort(), log: () => {} })
  context.onEnd(() => service.stop())
  const objects = createObjectStore({
    ...access,
    endpoint: service.url,
    region: 'us-east-1',
    requestTimeoutMs: 60_000,
  })
  context.onEnd(() => objects.close())
  return {
    pids: { 'S3 server': service.pid },
    env: {
      S3_ENDPOINT: service.url,
      S3_BUCKET: access.bucket,
      AWS_ACCESS_KEY_ID: access.accessKeyId,
      AWS_SECRET_ACCESS_KEY: access.secretAccessKey,
    },
    objects,
  }
}
