import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { MINUTE_MS } from '../../schemas/units.ts'
import { partitionSlot } from '../../shared/queue/registry/queue-tag.ts'
import { startClients } from '../support/chaos/clients.ts'
import { compareLedger, untilSettled } from '../support/chaos/compare-ledger.ts'
import { startInstallation } from '../support/chaos/installation.ts'
import { type RedisCluster, startRedisCluster } from '../support/cluster/redis-cluster.ts'

const MINUTES = Number(process.env.CHAOS_MINUTES || 1)
const SEED = Number(process.env.CHAOS_SEED || Math.floor(Math.random() * 2 ** 31))
/** Requests per second of each kind of payload. */
const RATE = 4
const STAY_MS = 2_000
const SERVED_DEADLINE_MS = 60_000
const SETTLE_DEADLINE_MS = 180_000
const PARTITIONS = [1, 2, 3, 4, 5, 6]

let dir: string
let cluster: RedisCluster

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'penstock-cluster-'))
  cluster = await startRedisCluster(dir)
})

afterAll(async () => {
  await cluster?.stop()
  await rm(dir, { recursive: true, force: true, maxRetries: 3 })
})

it('killing the masters of a Redis Cluster one after the other, whose replicas are promoted, keeps the ledger', async () => {
  const killed = new Set<string>()
  await keepsLedger(async partition => {
    killed.add(await cluster.failOver(partitionSlot(partition)))
    return `master of partition ${partition} killed`
  })
  expect(killed.size).toBeGreaterThanOrEqual(3)
})

it('moving the slots of partitions to other masters of a Redis Cluster, with what waits in them, keeps the ledger', async () => {
  await keepsLedger(async partition => {
    const master = await cluster.moveSlot(partitionSlot(partition))
    return `slot of partition ${partition} moved to ${master}`
  })
})

/** Does something to the cluster for one partition after the other while clients send, each at least once. */
async function keepsLedger(change: (partition: number) => Promise<string>): Promise<void> {
  console.log(`to repeat: CHAOS_SEED=${SEED}`)
  const settings = { QUEUE_PARTITIONS: String(PARTITIONS.length), REDIS_DURABILITY: 'replicated' }
  const installation = await startInstallation({ edges: 2, workers: 2, settings, queuesUrl: cluster.url })
  try {
    const { edgeUrls, secrets, queues } = installation
    const clients = startClients({ edgeUrls, secrets, seed: SEED, rate: RATE })
    const { ledger, builds } = clients
    await clients.untilServed(SERVED_DEADLINE_MS)
    const endsAt = performance.now() + MINUTES * MINUTE_MS
    for (let i = 0; performance.now() < endsAt || i < PARTITIONS.length; i++) {
      const before = ledger.answers()['200'] ?? 0
      const done = await change(PARTITIONS[i % PARTITIONS.length] as number)
      const acknowledged = (ledger.answers()['200'] ?? 0) - before
      await clients.untilServed(SERVED_DEADLINE_MS)
      console.log(`${done}: ${acknowledged} requests acknowledged until all were whole`)
      await delay(STAY_MS)
    }
    await clients.stop()
    console.log('the clients have stopped')
    for (const build of builds.sent) {
      if (build.isUploaded && !build.isCompleted) await builds.complete(build, SETTLE_DEADLINE_MS)
    }
    await untilSettled(installation, SETTLE_DEADLINE_MS)
    console.log(`ledger: ${JSON.stringify(ledger.summary())}, answers: ${JSON.stringify(ledger.answers())}`)
    const read = await queues.read()
    expect(read.numbers).toEqual(PARTITIONS)
    const accepted = read.of('traces').map(({ redis, keys }) => redis.hget(keys.flow, 'acceptedPayloads'))
    expect((await Promise.all(accepted)).map(Number).every(count => count > 0)).toBe(true)
    expect(await compareLedger(installation, ledger, builds.sent)).toEqual([])
    expect(installation.unexpectedEnds()).toEqual([])
  } finally {
    await installation.stop()
  }
}
