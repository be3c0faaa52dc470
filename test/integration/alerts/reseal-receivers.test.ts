import { randomBytes } from 'node:crypto'
import { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { resealReceivers } from '../../../alerts/calling/reseal-receivers.ts'
import { openTarget, sealTarget } from '../../../alerts/calling/targets.ts'
import { Sealing } from '../../../alerts/delivery/sealing.ts'
import type { Receiver } from '../../../schemas/records/alerts.ts'
import { createDirectory, newId } from '../../../shared/directory/directory.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

const [previousKey, key, lostKey] = [1, 2, 3].map(() => randomBytes(32).toString('base64')) as [string, string, string]
const TARGET = { channel: 'slack', url: 'https://hooks.slack.example/services/T/B/x' } as const

let redis: Redis

beforeAll(async () => {
  redis = new Redis(`${sharedServices().redisUrl}/14`)
  await redis.flushdb()
})
afterAll(() => redis?.disconnect())

it('seals the receivers of all workspaces with the new key, without a change of a member', async () => {
  const directory = createDirectory(redis)
  const author = { by: null, now: Date.now() }
  const receiverOf = (workspaceId: string, sealingKey: string): Receiver => {
    const [id, sealing] = [newId('rcv'), new Sealing({ key: sealingKey })]
    const sealed = sealTarget(sealing, workspaceId, id, TARGET)
    return {
      id,
      name: id,
      channel: 'slack',
      address: 'https://hooks.slack.example',
      sealed,
      createdAt: '2026-11-21T10:00:00Z',
    }
  }
  const workspaces = [newId('ws'), newId('ws')]
  for (const workspaceId of workspaces) {
    const receivers = [previousKey, lostKey, key].map(sealingKey => receiverOf(workspaceId, sealingKey))
    await directory.replaceAlerts({ workspaceId, revision: 0, receivers, rules: [] }, author)
  }
  const before = await Promise.all(workspaces.map(id => directory.alerts(id)))
  const lines: string[] = []
  const logger = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) })
  const sealing = new Sealing({ key, previousKey })
  const reseal = () => resealReceivers({ redis, sealing, logger, assertElected: async () => {} })
  await reseal()
  const after = await Promise.all(workspaces.map(id => directory.alerts(id)))
  for (const [i, alerts] of after.entries()) {
    const [resealed, lost, current] = (alerts?.receivers ?? []) as [Receiver, Receiver, Receiver]
    expect(openTarget(new Sealing({ key }), alerts?.workspaceId ?? '', resealed)).toEqual(TARGET)
    expect([lost, current]).toEqual(before[i]?.receivers.slice(1))
    expect([alerts?.revision, alerts?.changedAt]).toEqual([before[i]?.revision, before[i]?.changedAt])
  }
  await reseal()
  expect(await Promise.all(workspaces.map(id => directory.alerts(id)))).toEqual(after)
  const counts = lines.map(line => JSON.parse(line)).filter(({ msg }) => msg?.includes('are sealed'))
  expect(counts).toMatchObject([
    { resealed: 2, left: 2 },
    { resealed: 0, left: 2 },
  ])
})
