import { afterAll, beforeAll, expect, it } from 'vitest'
import { openPage } from '../../support/operate/page.ts'
import { type Services, s3Settings, startServices } from '../../support/services/services.ts'

let services: Services

beforeAll(async () => {
  services = await startServices()
})

afterAll(() => services?.stop())

it('the checks of the page accept stores that keep what they confirm', async () => {
  const { redisUrl: REDIS_URL, clickhouseUrl: CLICKHOUSE_URL, s3 } = services
  const page = await openPage('managed-stores.md', { REDIS_URL, CLICKHOUSE_URL, ...s3Settings(s3) })
  for (const heading of page.left()) await page.run(heading)
  expect(page.left()).toEqual([])
})

it('the check of Redis ends with an error when it cannot look', async () => {
  const page = await openPage('managed-stores.md', { REDIS_URL: services.redisUrl })
  await services.redis.stop()
  await expect(page.run('Redis')).rejects.toThrow(/Could not connect/)
})
