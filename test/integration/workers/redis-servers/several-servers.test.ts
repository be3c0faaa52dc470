import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePort } from '../../../../deploy/local/ports.ts'
import { startRedis } from '../../../../deploy/local/stores/redis.ts'
import { queueKeys } from '../../../../shared/queue/queue.ts'
import { keepRestartable, SERVER_PASSWORD, type TestService } from '../../../support/services/services.ts'
import { until } from '../../../support/until.ts'
import { faultsOf, type Pipeline, startPipeline } from './fixture.ts'

const DEADLINE = { deadlineMs: 60_000 }
const PARTITIONS = [0, 1, 2, 3]
let dir: string
let servers: TestService[] = []
let pipeline: Pipeline

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'penstock-servers-'))
  const startOne = async (name: string) => {
    const own = { dir: join(dir, name), port: await freePort(), password: SERVER_PASSWORD, log: () => {} }
    return keepRestartable(() => startRedis(own))
  }
  servers = [await startOne('a'), await startOne('b')]
  pipeline = await startPipeline(servers.map(({ url }) => url).join(), { QUEUE_PARTITIONS: '4' }, 8)
}, 120_000)

afterAll(async () => {
  await pipeline?.stop()
  await Promise.all(servers.map(server => server.kill9()))
  await rm(dir, { recursive: true, force: true, maxRetries: 3 })
}, 60_000)

it('spreads partitions over several servers, and accepts requests while one of them is down', async () => {
  const statuses = new Map<string, number>()
  let isOver = false
  const sending = pipeline.send('a', () => isOver, statuses)
  await until('each partition has accepted a request', () => pipeline.haveAccepted('spans', PARTITIONS), DEADLINE)
  const { servers: places } = pipeline.links
  expect(PARTITIONS.map(partition => places.serverOf('spans', partition))).toEqual(['0', '1', '0', '1'])

  const second = servers[1] as TestService
  await second.kill9()
  const killed = statuses.size
  const accepted = () => [...statuses.values()].slice(killed).filter(status => status === 200).length
  await until('the other server accepts requests', () => accepted() > 20, DEADLINE)
  await second.restart()
  const before = await acceptedBySecond()
  await until('the second server accepts requests again', async () => (await acceptedBySecond()) > before, DEADLINE)
  isOver = true
  await sending
  await pipeline.untilEmpty()
  expect(faultsOf(statuses, await pipeline.stored())).toEqual({ lost: [], doubled: [] })
}, 180_000)

async function acceptedBySecond(): Promise<number> {
  return Number(await pipeline.links.at('spans', 1).hget(queueKeys('spans', 1).flow, 'acceptedPayloads'))
}
