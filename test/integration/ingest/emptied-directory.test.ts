import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePort } from '../../../deploy/local/ports.ts'
import { startRedis } from '../../../deploy/local/stores/redis.ts'
import type { LocalService } from '../../../deploy/local/stores/service.ts'
import { createDirectory } from '../../../shared/directory/directory.ts'
import { CREDENTIAL_CHANGES_CHANNEL, directoryKeys } from '../../../shared/directory/record.ts'
import { digestOf, generateKey } from '../../../shared/ids/credentials.ts'
import { issueKey, openEdge, startEdge, type TestEdge } from '../../support/services/edge.ts'
import { until } from '../../support/until.ts'

let dir: string
let queues: LocalService
let directory: LocalService
let redis: Redis
let edge: TestEdge
let key: string
let secretKey: string

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'penstock-emptied-'))
  const start = async (name: string) =>
    startRedis({ dir: join(dir, name), port: await freePort(), password: 'test', log: () => {} })
  queues = await start('queues')
  directory = await start('directory')
  redis = new Redis(directory.url)
  edge = await startEdge(queues.url, { DIRECTORY_REDIS_URL: directory.url })
  key = await issueKey(createDirectory(redis))
  secretKey = await issueKey(createDirectory(redis), { kind: 'secret', scopes: ['release:write'] })
})

afterAll(async () => {
  await edge?.stop()
  redis?.disconnect()
  await Promise.all([queues?.kill9(), directory?.kill9()])
  await rm(dir, { recursive: true, force: true })
})

async function send(publicKey: string, to: TestEdge = edge): Promise<number> {
  const headers = { 'content-type': 'application/x-protobuf', 'x-service-public-key': publicKey }
  const response = await fetch(`${to.baseUrl}/drain/v1/traces`, { method: 'POST', headers })
  await response.arrayBuffer()
  return response.status
}

async function register(): Promise<number> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${secretKey}` }
  const init = { method: 'POST', headers, body: JSON.stringify({ version: '1' }) }
  const response = await fetch(`${edge.baseUrl}/v3/releases`, init)
  await response.arrayBuffer()
  return response.status
}

it('a key is 503 and never 401 once the directory has lost everything, also after a restart of the edge', async () => {
  expect(await send(key)).toBe(200)
  expect(await register()).toBe(200)
  expect(await send(generateKey('public'))).toBe(401)
  const records = [directoryKeys.receiptSecret, directoryKeys.installation] as const
  const kept = (await redis.mget(...records)) as string[]

  await redis.flushall()
  await redis.publish(CREDENTIAL_CHANGES_CHANNEL, `${digestOf(key)} ${digestOf(secretKey)}`)
  await until('the key is looked up again', async () => (await send(key)) !== 200)
  expect(await send(key)).toBe(503)
  expect(await register()).toBe(503)
  expect(await send(generateKey('public'))).toBe(503)
  await until('the edge that runs is not ready either', () => /the directory is empty/.test(String(edge.isReady())))
  expect(await edge.metrics()).toMatch(/^penstock_directory_empty\{.*\} 1$/m)

  const restarted = await openEdge(queues.url, { DIRECTORY_REDIS_URL: directory.url })
  await until('only the empty directory is in the way', () =>
    /the directory is empty/.test(String(restarted.isReady())),
  )
  expect(await send(key, restarted)).toBe(503)
  expect(await redis.dbsize()).toBe(0)
  await redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
  await until('the running edge names it, too', () => /the directory is empty/.test(String(edge.isReady())))

  await redis.mset(Object.fromEntries(records.map((key, i) => [key, kept[i] ?? ''])))
  await until('the restarted edge is ready', () => restarted.isReady() === true)
  await until('the edge that ran is ready again', () => edge.isReady() === true)
  expect(await edge.metrics()).toMatch(/^penstock_directory_empty\{.*\} 0$/m)
  expect(await send(key, restarted)).toBe(401)
  await until('the running edge is ready', () => edge.isReady() === true)
  await restarted.stop()
})
