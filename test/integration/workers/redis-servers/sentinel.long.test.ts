import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type SentinelRedis, startSentinelRedis } from '../../../support/chaos/sentinel-redis.ts'
import { until } from '../../../support/until.ts'
import { faultsOf, type Pipeline, startPipeline } from './fixture.ts'

const DEADLINE = { deadlineMs: 60_000 }
let dir: string
let servers: SentinelRedis
let pipeline: Pipeline

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'penstock-sentinel-'))
  servers = await startSentinelRedis(dir)
  pipeline = await startPipeline(servers.url, { QUEUE_PARTITIONS: '2', REDIS_DURABILITY: 'replicated' }, 9)
}, 120_000)

afterAll(async () => {
  await pipeline?.stop()
  await servers?.stop()
  await rm(dir, { recursive: true, force: true, maxRetries: 3 })
}, 60_000)

it('follows the primary that Sentinel names, and stores once what it has acknowledged before the old one was killed', async () => {
  const statuses = new Map<string, number>()
  let isOver = false
  const sending = pipeline.send('a', () => isOver, statuses)
  await until('requests are accepted', () => pipeline.haveAccepted('traces', 2), DEADLINE)
  const killed = servers.primary
  await killed.service.kill9()
  await until('the replica is promoted', () => servers.primary !== killed, DEADLINE)
  // Nothing is acknowledged until the new primary has a replica.
  await killed.service.restart()
  const served = statuses.size
  const accepted = () => [...statuses.values()].slice(served).filter(status => status === 200).length
  await until('requests are accepted again', () => accepted() > 20, DEADLINE)
  isOver = true
  await sending
  await pipeline.untilEmpty()
  expect(faultsOf(statuses, await pipeline.stored())).toEqual({ lost: [], doubled: [] })
}, 180_000)
