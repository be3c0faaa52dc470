import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePort } from '../../../deploy/local/ports.ts'
import { startRedis } from '../../../deploy/local/stores/redis.ts'
import type { LocalService } from '../../../deploy/local/stores/service.ts'
import { type OperatedInstallation, startOperatedInstallation } from '../../support/operate/installation.ts'
import { SERVER_PASSWORD } from '../../support/services/services.ts'

let installation: OperatedInstallation
let next: LocalService

beforeAll(async () => {
  installation = await startOperatedInstallation()
  const dir = join(installation.services.dir, 'redis-2')
  next = await startRedis({ dir, port: await freePort(), password: SERVER_PASSWORD, log: () => {} })
})

afterAll(async () => {
  await installation?.stop()
  await next?.stop()
})

it('Redis moves to another server under load, and nothing that was acknowledged is lost', async () => {
  const { services, settings, clients } = installation
  const [from, to] = [new URL(services.redisUrl), new URL(next.url)]
  const page = await installation.openPage('move-redis.md', {
    OLD: services.redisUrl,
    NEW: next.url,
    OLD_HOST: from.hostname,
    OLD_PORT: from.port,
    NEW_HOST: to.hostname,
    NEW_PORT: to.port,
    PASSWORD: SERVER_PASSWORD,
  })
  await clients.untilServed(30_000)
  await page.run('1. Copy')
  await clients.untilServed(30_000)
  await page.run('2. Take over')

  settings.REDIS_URL = next.url
  settings.DIRECTORY_REDIS_URL = next.url
  await installation.stopWorkers()
  await installation.startWorkers()
  await installation.stopEdge()
  await installation.startEdge()
  await clients.untilServed(30_000)

  await page.run('4. End the old server')
  await clients.untilServed(30_000)
  await installation.expectNothingLost(page)
  expect(Object.keys(clients.ledger.answers())).toContain('200')
}, 180_000)
