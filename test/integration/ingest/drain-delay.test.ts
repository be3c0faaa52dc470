import { join } from 'node:path'
import { Redis } from 'ioredis'
import { expect, it } from 'vitest'
import { ROOT } from '../../../deploy/local/config.ts'
import { freePort } from '../../../deploy/local/ports.ts'
import { startNodeProcess } from '../../../deploy/local/processes/processes.ts'
import { createDirectory } from '../../../shared/directory/directory.ts'
import { issueKey } from '../../support/services/edge.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { until } from '../../support/until.ts'

it('an edge that gets SIGTERM is not ready and still accepts requests for DRAIN_DELAY_MS, then ends', async () => {
  const redisUrl = `${sharedServices().redisUrl}/13`
  const redis = new Redis(redisUrl)
  await redis.flushdb()
  const key = await issueKey(createDirectory(redis), {})
  const [port, adminPort] = [await freePort(), await freePort()]
  const adminUrl = `http://127.0.0.1:${adminPort}`
  const edge = await startNodeProcess({
    script: join(ROOT, 'ingest/main.ts'),
    env: {
      PATH: process.env.PATH,
      REDIS_URL: redisUrl,
      DIRECTORY_REDIS_URL: redisUrl,
      INGEST_PORT: String(port),
      INGEST_ADMIN_PORT: String(adminPort),
      DRAIN_DELAY_MS: '2000',
      LOG_LEVEL: 'error',
    },
    adminUrl,
    log: () => {},
    signal: new AbortController().signal,
  })
  const ended = edge.stop(10_000)
  await until('the edge is not ready', async () => (await fetch(`${adminUrl}/readyz`)).status === 503)
  const response = await fetch(`http://127.0.0.1:${port}/drain/v1/traces`, {
    method: 'POST',
    headers: { 'x-service-public-key': key, 'content-type': 'application/json' },
    body: '{"resourceSpans":[]}',
  })
  expect([response.status, response.headers.get('connection')]).toEqual([200, 'close'])
  await ended
  expect(await edge.exited).toMatchObject({ code: 0 })
  redis.disconnect()
})
