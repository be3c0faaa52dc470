import { Queue } from 'bullmq'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { loadSecrets } from '../../../deploy/local/workspace/secrets.ts'
import { queueKeys } from '../../../shared/queue/queue.ts'
import { type OperatedInstallation, startOperatedInstallation } from '../../support/operate/installation.ts'
import { until } from '../../support/until.ts'

const keys = queueKeys('traces')
let installation: OperatedInstallation
let redis: Redis

beforeAll(async () => {
  installation = await startOperatedInstallation()
  redis = new Redis(installation.services.redisUrl)
})

afterAll(async () => {
  redis?.disconnect()
  await installation?.stop()
})

/** Adds a job as somebody does who does not know what a job refers to. */
async function addMalformedJob(): Promise<void> {
  const bull = new Queue('express', { connection: redis, prefix: keys.bull })
  await bull.add('by hand', {})
  await bull.close()
}

it('the commands of the queues work under load, and refuse and lose nothing', async () => {
  const { clients, services } = installation
  const page = await installation.openPage('queues.md')
  await clients.untilServed(30_000)
  await page.run('Look')
  await addMalformedJob()
  await until('the job has failed', async () => (await redis.zcard(keys.failed('express'))) === 1)
  await page.run('Remove failed jobs')
  expect(await redis.zcard(keys.failed('express'))).toBe(0)

  await page.run('Pause')
  await installation.killWorkers()
  await installation.startWorkers()
  const JOB = await until('a job waits', async () => (await redis.lrange(keys.waiting('express'), 0, 0))[0])
  await page.run('Look at jobs')
  await page.run('Set a job aside', { JOB })
  await page.run('Resume')
  await until('the job is set aside', async () => (await redis.zscore(keys.pending, JOB)) === null)
  await until('its letters are indexed', async () =>
    (
      await Promise.all(
        (['dead-letters', 'dead-letter-index'] as const).map(name => redis.zcard(queueKeys(name).pending)),
      )
    ).every(count => count === 0),
  )
  await page.run('Store them again', { WORKSPACE: (await loadSecrets(services.dir)).workspaceSlug })
  await clients.untilServed(30_000)
  // A replayed letter has a row and a log entry for each attempt.
  const ofReplays =
    /^the dead letter .* has 2 rows$|: set_aside: ends its worker$|^the log contains the receipt .* 2 times$/
  await installation.expectNothingLost(page, { expected: ofReplays })
  expect(Object.keys(clients.ledger.answers()).sort()).toEqual(['200', '400', '401'])
}, 500_000)
