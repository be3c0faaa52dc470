import { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import type { Installation } from '../../../schemas/records/installation.ts'
import { readInstallation } from '../../../shared/directory/installation-record.ts'
import { directoryKeys, upkeepKeys } from '../../../shared/directory/record.ts'
import { adoptInstallation } from '../../../shared/installation/adopt-installation.ts'
import { type Checked, checkInstallation } from '../../../shared/installation/check-installation.ts'
import type { Known } from '../../../shared/installation/check-queues.ts'
import { type Claim, type ClaimedStore, claimedBucket } from '../../../shared/installation/claimed-store.ts'
import { InstallationWatch } from '../../../shared/installation/installation-watch.ts'
import { acceptLosses, newInstallation } from '../../../shared/installation/queue-losses.ts'
import { INSTALLATION_KEY } from '../../../shared/object-store/object-keys.ts'
import { createObjectStore } from '../../../shared/object-store/object-store.ts'
import { queueKeys } from '../../../shared/queue/queue.ts'
import { readOldestWatermarks, settledBeforeMs } from '../../../shared/queue/watermark.ts'
import { onOneServer } from '../../support/queue-on.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { until } from '../../support/until.ts'

const services = sharedServices()
const directory = new Redis(`${services.redisUrl}/11`)
const queuesRedis = new Redis(`${services.redisUrl}/12`)
const queues = onOneServer(queuesRedis)
const NEW: Known = { installation: undefined, marks: new Map(), seen: undefined }
const MARK = queueKeys('traces').mark

/** A store in memory. */
function storeOf(name: ClaimedStore['name'], value?: Claim) {
  const state = { value, isDown: false }
  const write = async (claim: Claim) => {
    state.value = claim
  }
  return {
    state,
    name,
    async read() {
      if (state.isDown) throw new Error('the store is down')
      return state.value
    },
    claim: async (claim: Claim) => (state.value === undefined ? write(claim) : undefined),
    replace: write,
  }
}

const check = (stores: readonly ClaimedStore[] = [], known: Known = NEW): Promise<Checked> =>
  checkInstallation({ directory, queues, stores, mayClaim: true }, known)
const idOf = async () => (await readInstallation(directory))?.id

beforeEach(async () => {
  await Promise.all([directory.flushdb(), queuesRedis.flushdb()])
})

afterAll(() => {
  for (const redis of [directory, queuesRedis]) redis.disconnect()
})

describe('an installation', () => {
  it('is made once by processes that start together, and all stores have its id', async () => {
    const [clickhouse, bucket] = [storeOf('clickhouse'), storeOf('bucket')]
    const checks = await Promise.all([check(), check([clickhouse, bucket]), check([clickhouse]), check(), check()])
    expect(checks.map(({ fault }) => fault)).toEqual(Array(5).fill(undefined))
    const after = await check([clickhouse, bucket])
    const { id, epochs, stores, losses } = (await readInstallation(directory)) as Installation
    expect(new Set(checks.map(({ installation }) => installation?.id))).toEqual(new Set([id]))
    expect(after.verified).toEqual(['directory', 'queues', 'clickhouse', 'bucket'])
    expect({ stores, losses, epochs }).toEqual({
      stores: expect.any(Array),
      losses: [],
      epochs: { 0: after.marks.get(0)?.epoch },
    })
    expect(stores.toSorted()).toEqual(['bucket', 'clickhouse'])
    expect(clickhouse.state.value).toEqual({ id, epochs })
    expect(bucket.state.value?.id).toBe(id)
  })

  it('is that of a process which has made it and claimed a store since this one read the empty directory', async () => {
    const clickhouse = storeOf('clickhouse')
    let isFirst = true
    const late: ClaimedStore = {
      ...clickhouse,
      async read() {
        if (isFirst) {
          isFirst = false
          await check([clickhouse])
        }
        return clickhouse.read()
      },
    }
    const { fault, installation, verified } = await check([late])
    expect({ fault, id: installation?.id }).toEqual({ fault: undefined, id: await idOf() })
    expect(verified).toContain('clickhouse')
  })

  it('is not the one of another store, which is named and stays as it is', async () => {
    await check()
    const id = await idOf()
    const stranger = storeOf('clickhouse', { id: newInstallation().id, epochs: {} })
    const before = { ...stranger.state.value }
    expect(await check([stranger, storeOf('bucket')])).toMatchObject({
      fault: `ClickHouse belongs to installation ${before.id}, the Redis of the directory to ${id}: correct the address, or run \`penstock doctor --adopt\` after a move`,
      verified: [],
    })
    expect(stranger.state.value).toEqual(before)
    const [other] = [storeOf('bucket', { id: newInstallation().id })]
    expect((await check([other])).fault).toMatch(/^the bucket belongs to installation/)
  })

  it('does not take a store that had its id and has none now', async () => {
    const bucket = storeOf('bucket')
    await check([bucket])
    bucket.state.value = undefined
    expect((await check([bucket])).fault).toMatch(
      /^the bucket has no installation id, although installation \w+ had claimed it: /,
    )
    expect(bucket.state.value).toBeUndefined()
  })

  it('is not made in an empty directory while another store has one, and is back with its record', async () => {
    const first = await check()
    const kept = (await directory.get(directoryKeys.installation)) as string
    await directory.flushdb()
    for (const known of [NEW, first]) {
      expect((await check([], known)).fault).toMatch(
        /^the directory is empty or another one, and the Redis of the queues belongs to installation \w+: restore its backup/,
      )
    }
    expect(await directory.dbsize()).toBe(0)
    await directory.set(directoryKeys.installation, kept)
    expect(await check()).toMatchObject({ fault: undefined, installation: { losses: [] } })
  })

  it('is known while a store does not answer, whose id is compared once it does', async () => {
    const bucket = storeOf('bucket')
    bucket.state.isDown = true
    const down = await check([bucket])
    expect(down).toMatchObject({ fault: undefined, verified: ['directory', 'queues'] })
    bucket.state.isDown = false
    bucket.state.value = { id: newInstallation().id }
    expect((await check([bucket], down)).fault).toMatch(/^the bucket belongs/)
  })

  it('is only compared by a process that may not claim', async () => {
    const bucket = storeOf('bucket')
    const compare = () => checkInstallation({ directory, queues, stores: [bucket], mayClaim: false }, NEW)
    expect(await compare()).toMatchObject({ fault: undefined })
    expect([await directory.dbsize(), await queuesRedis.dbsize(), bucket.state.value]).toEqual([0, 0, undefined])
    await check()
    bucket.state.value = { id: newInstallation().id }
    expect((await compare()).fault).toMatch(/^the bucket belongs/)
  })

  it('has its id in one object of the bucket, which only an adoption replaces', async () => {
    const objects = createObjectStore({ ...services.s3, requestTimeoutMs: 10_000 })
    const bucket = claimedBucket(objects)
    const [a, b] = [newInstallation(), newInstallation()]
    try {
      await objects.deleteMany([INSTALLATION_KEY])
      expect(await bucket.read()).toBeUndefined()
      await bucket.claim(a)
      await bucket.claim(b)
      expect(await bucket.read()).toEqual({ id: a.id })
      await bucket.replace(b)
      expect(await bucket.read()).toEqual({ id: b.id })
    } finally {
      await objects.deleteMany([INSTALLATION_KEY])
      objects.close()
    }
  })
})

describe('an adoption', () => {
  it('writes the id of the directory into the others, and hides no loss', async () => {
    const [clickhouse, bucket] = [storeOf('clickhouse'), storeOf('bucket')]
    const { marks } = await check([clickhouse, bucket])
    const before = await idOf()
    const moved = newInstallation()
    await directory.set(directoryKeys.installation, JSON.stringify({ ...moved, epochs: { 0: marks.get(0)?.epoch } }))
    bucket.state.value = undefined
    expect(await adoptInstallation({ directory, queues, stores: [clickhouse, bucket] })).toEqual([
      { store: 'directory', before: moved.id, after: moved.id },
      { store: 'queues', before, after: moved.id },
      { store: 'clickhouse', before, after: moved.id },
      { store: 'bucket', before: undefined, after: moved.id },
    ])
    expect(await check([clickhouse, bucket])).toMatchObject({ fault: undefined, installation: { losses: [] } })
    await queuesRedis.flushdb()
    await adoptInstallation({ directory, queues, stores: [clickhouse, bucket] })
    expect((await check([clickhouse, bucket])).installation?.losses).toHaveLength(1)
  })

  it('gives a directory without an id that of the queues', async () => {
    await check()
    const id = await idOf()
    await directory.flushdb()
    await adoptInstallation({ directory, queues, stores: [storeOf('bucket', { id: newInstallation().id })] })
    expect(await check()).toMatchObject({ fault: undefined, installation: { id, losses: [] } })
  })
})

describe('a loss of the queues', () => {
  it('is recorded once by processes that find it together, with what was settled when its data was seen', async () => {
    const clickhouse = storeOf('clickhouse')
    const before = await Promise.all([check([clickhouse]), check(), check()])
    const seen = before[0].seen
    await queuesRedis.zadd(queueKeys('traces').pending, 1_000, 'job')
    const waiting = await check([clickhouse], before[0])
    expect(waiting.seen?.settledBeforeMs.traces).toBe(1_000)
    await directory.set(upkeepKeys.queuesSeen, JSON.stringify(waiting.seen))
    await queuesRedis.flushdb()
    const found = await Promise.all([check([clickhouse], waiting), check([], before[1]), check([], before[2]), check()])
    const { losses, epochs } = (await readInstallation(directory)) as Installation
    expect(losses).toHaveLength(1)
    expect(losses[0]).toMatchObject({ queues: [0], acceptedAtMs: null, seenAtMs: waiting.seen?.seenAtMs })
    expect(losses[0]?.settledBeforeMs).toMatchObject({ traces: 1_000, logs: waiting.seen?.settledBeforeMs.logs })
    expect(seen?.seenAtMs).toBeLessThanOrEqual(losses[0]?.seenAtMs ?? 0)
    for (const { fault, marks } of found) {
      expect(fault).toBeUndefined()
      expect(marks.get(0)).toMatchObject({ epoch: epochs[0], loss: { acceptedAtMs: null } })
    }
    expect(epochs[0]).not.toBe(before[0].marks.get(0)?.epoch)
    expect((await check([clickhouse])).installation?.losses).toHaveLength(1)
    expect(clickhouse.state.value?.epochs).toEqual(epochs)
  })

  it('holds watermarks back until it is accepted, and nothing that waits for lost requests', async () => {
    const first = await check()
    await queuesRedis.flushdb()
    const lost = await check([], first)
    const loss = lost.marks.get(0)?.loss
    const settled = async () => (await readOldestWatermarks(queues)).settledBeforeMs
    expect(await settled()).toEqual(loss?.settledBeforeMs)
    expect(await settledBeforeMs(queues, 'ws_1')).toBeGreaterThan(loss?.settledBeforeMs.traces ?? 0)
    expect(await acceptLosses({ directory, queues })).toHaveLength(1)
    expect((await settled()).traces).toBeGreaterThanOrEqual(loss?.foundAtMs ?? 0)
    expect((await readInstallation(directory))?.losses).toMatchObject([{ acceptedAtMs: expect.any(Number) }])
    expect(await acceptLosses({ directory, queues })).toEqual([])
  })

  it('holds watermarks back for a day at most', async () => {
    const first = await check()
    await queuesRedis.flushdb()
    await check([], first)
    const mark = JSON.parse((await queuesRedis.get(MARK)) as string)
    const dayBefore = mark.loss.foundAtMs - 86_400_000
    await queuesRedis.set(MARK, JSON.stringify({ ...mark, loss: { ...mark.loss, foundAtMs: dayBefore } }))
    expect((await readOldestWatermarks(queues)).settledBeforeMs.traces).toBeGreaterThanOrEqual(mark.loss.foundAtMs)
  })

  it('that follows another one which is not accepted is one with it', async () => {
    const first = await check()
    await queuesRedis.flushdb()
    const second = await check([], first)
    await queuesRedis.flushdb()
    const third = await check([], second)
    expect(third.installation?.losses).toMatchObject([
      { seenAtMs: second.marks.get(0)?.loss?.seenAtMs, settledBeforeMs: second.marks.get(0)?.loss?.settledBeforeMs },
    ])
    await acceptLosses({ directory, queues })
    await queuesRedis.flushdb()
    expect((await check([], third)).installation?.losses).toHaveLength(2)
  })

  it('is continued by the next process when the first one dies before it marks the queues', async () => {
    const first = await check()
    await queuesRedis.flushdb()
    await check([], first)
    await queuesRedis.del(MARK)
    const other = await check([], first)
    expect(other.installation?.losses).toHaveLength(1)
    expect(other.marks.get(0)).toMatchObject({ epoch: other.installation?.epochs[0], loss: { acceptedAtMs: null } })
  })

  it('is found by a process that has just begun, and by ClickHouse when the directory knows no epoch', async () => {
    const clickhouse = storeOf('clickhouse')
    await check([clickhouse])
    const { id, createdAtMs } = (await readInstallation(directory)) as Installation
    await queuesRedis.flushdb()
    await directory.del(upkeepKeys.queuesSeen)
    const restored = { ...newInstallation(id), createdAtMs, stores: ['clickhouse'] }
    await directory.set(directoryKeys.installation, JSON.stringify(restored))
    const { installation } = await check([clickhouse])
    expect(installation?.losses).toMatchObject([{ settledBeforeMs: { traces: createdAtMs } }])
  })

  it('is none when the directory is restored from a backup of before the last one', async () => {
    const clickhouse = storeOf('clickhouse')
    const first = await check([clickhouse])
    const backup = (await directory.get(directoryKeys.installation)) as string
    await queuesRedis.flushdb()
    const second = await check([clickhouse], first)
    await directory.set(directoryKeys.installation, backup)
    for (const known of [NEW, second]) {
      const { installation, fault } = await check([clickhouse], known)
      expect({ fault, epochs: installation?.epochs }).toEqual({ fault: undefined, epochs: second.installation?.epochs })
      expect(installation?.losses).toEqual([])
    }
  })
})

it('a watch runs what uses a store only while that belongs to the installation', async () => {
  const bucket = storeOf('bucket')
  const logged: string[] = []
  const logger = pino({ level: 'info' }, { write: line => void logged.push(JSON.parse(line).msg) })
  const [own, ownQueues] = [directory.duplicate(), queuesRedis.duplicate()]
  const deps = { directory: own, queues: onOneServer(ownQueues), stores: [bucket], mayClaim: true, logger }
  const watch = new InstallationWatch(deps)
  expect([watch.fault, watch.refuse()?.code]).toEqual([
    expect.stringContaining('not known yet'),
    'INGEST_INFRA_UNAVAILABLE',
  ])
  // A check that has begun before does not see a change, and later calls share it.
  const checkAnew = () => watch.check().then(() => watch.check())
  let running = 0
  const work = watch.whileMayUse(['bucket'], () => {
    running++
    return { stop: () => void running-- }
  })
  try {
    await until('the stores are verified', () => watch.mayUse(['bucket', 'queues', 'directory']))
    expect([running, watch.refuse(), watch.mayUse(['clickhouse'])]).toEqual([1, undefined, false])
    const { id } = bucket.state.value as Claim
    bucket.state.value = { id: newInstallation().id }
    await checkAnew()
    expect([running, watch.mayUse(['bucket']), watch.mayUse(['queues'])]).toEqual([0, false, false])
    expect(watch.refuse()).toMatchObject({ code: 'INGEST_INFRA_UNAVAILABLE' })
    bucket.state.value = { id }
    await checkAnew()
    expect([running, watch.fault]).toEqual([1, undefined])
    await queuesRedis.flushdb()
    for (let i = 0; i < 3; i++) await watch.check()
    expect(watch.hasOpenLoss).toBe(true)
    const ofLoss = logged.filter(line => line.startsWith('the redis of the queues has lost its data'))
    expect(ofLoss).toHaveLength(1)
    expect(logged.filter(line => line === 'the stores do not belong together')).toHaveLength(1)
  } finally {
    await work.stop()
    watch.stop()
    for (const redis of [own, ownQueues]) redis.disconnect()
  }
  expect(running).toBe(0)
})
