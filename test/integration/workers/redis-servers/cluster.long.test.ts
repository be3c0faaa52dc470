import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { partitionSlot } from '../../../../shared/queue/registry/queue-tag.ts'
import { type RedisCluster, startRedisCluster } from '../../../support/cluster/redis-cluster.ts'
import { until } from '../../../support/until.ts'
import { faultsOf, type Pipeline, startPipeline } from './fixture.ts'

let dir: string
let cluster: RedisCluster
let pipeline: Pipeline

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'penstock-cluster-'))
  cluster = await startRedisCluster(dir)
  pipeline = await startPipeline(cluster.url, { QUEUE_PARTITIONS: '4', REDIS_DURABILITY: 'replicated' }, 10)
}, 120_000)

afterAll(async () => {
  await pipeline?.stop()
  await cluster?.stop()
  await rm(dir, { recursive: true, force: true, maxRetries: 3 })
}, 60_000)

it('spreads requests over the slots of a cluster, stores each once, and moves letters within their slot', async () => {
  const statuses = new Map<string, number>()
  await until(
    'each queue has accepted a request and had a letter',
    async () => {
      const names = Array.from({ length: 4 }, (_, i) => `a${statuses.size + i}`)
      const answers = await Promise.all([...names, undefined, undefined].map(pipeline.post))
      for (const [i, name] of names.entries()) statuses.set(name, answers[i] as number)
      const found = [pipeline.haveAccepted('traces', 4), pipeline.haveAccepted('dead-letters', 4)]
      return (await Promise.all(found)).every(Boolean)
    },
    { deadlineMs: 60_000 },
  )
  await pipeline.untilEmpty()
  expect(faultsOf(statuses, await pipeline.stored())).toEqual({ lost: [], doubled: [] })
}, 120_000)

it('keeps what it has acknowledged when a master is killed and its replica promoted, and stores it once', async () => {
  const statuses = new Map<string, number>()
  let isOver = false
  const sending = pipeline.send('b', () => isOver, statuses)
  await until('requests are accepted', () => statuses.size > 20, { deadlineMs: 60_000 })
  await cluster.failOver(partitionSlot(3))
  const served = statuses.size
  const accepted = () => [...statuses.values()].slice(served).filter(status => status === 200).length
  await until('requests are accepted again', () => accepted() > 20, { deadlineMs: 60_000 })
  isOver = true
  await sending
  await pipeline.untilEmpty()
  expect(faultsOf(statuses, await pipeline.stored())).toEqual({ lost: [], doubled: [] })
}, 180_000)
