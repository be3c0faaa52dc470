import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { checkInstallation } from '../../../../shared/installation/check-installation.ts'
import type { Known } from '../../../../shared/installation/check-queues.ts'
import { Queues } from '../../../../shared/queue/queues.ts'
import { connectConsumer } from '../../../../shared/queue/redis.ts'
import { partitionSlot } from '../../../../shared/queue/registry/queue-tag.ts'
import { type RedisCluster, startRedisCluster } from '../../../support/cluster/redis-cluster.ts'
import { sharedServices } from '../../../support/services/shared-services.ts'
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

it('knows the queues whose server has lost its data, and none after a replica was promoted', async () => {
  const directory = new Redis(`${sharedServices().redisUrl}/10`)
  const queues = new Queues(cluster.url, to => connectConsumer(to, pino({ level: 'silent' })))
  const check = (known: Known) => checkInstallation({ directory, queues, stores: [], mayClaim: true }, known)
  const serverOf = async (number: number) =>
    /run_id:(\w+)/.exec(await queues.at('traces', number).redis.info('server'))?.[1]
  try {
    const before = await check({ installation: undefined, marks: new Map(), seen: undefined })
    expect({ fault: before.fault, losses: before.installation?.losses }).toEqual({ fault: undefined, losses: [] })
    const numbers = [...before.marks.keys()].sort()
    expect(numbers).toEqual([1, 2, 3, 4])
    const emptied = await serverOf(1)
    const lost = []
    for (const number of numbers) if ((await serverOf(number)) === emptied) lost.push(number)
    expect(lost.length).toBeLessThan(numbers.length)
    await queues.at('traces', 1).redis.flushall()
    const after = await check(before)
    expect(after.installation?.losses).toMatchObject([{ queues: lost, acceptedAtMs: null }])
    const changed = numbers.filter(number => after.marks.get(number)?.epoch !== before.marks.get(number)?.epoch)
    expect(changed).toEqual(lost)
  } finally {
    queues.close()
    directory.disconnect()
  }
}, 60_000)
