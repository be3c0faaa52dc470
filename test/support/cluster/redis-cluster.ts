import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Redis } from 'ioredis'
import { freePort } from '../../../deploy/local/ports.ts'
import { startRedis } from '../../../deploy/local/stores/redis.ts'
import { keepRestartable, SERVER_PASSWORD, type TestService } from '../services/services.ts'
import { until } from '../until.ts'

/** A Redis Cluster of three masters, each with a replica, on ports of this machine. */
export interface RedisCluster {
  /** Address for the processes of the product. */
  readonly url: string
  readonly nodes: readonly TestService[]
  /** Kills the master of the slot, waits until its replica is promoted, and starts it again as a replica. Returns its address. */
  failOver(slot: number): Promise<string>
  /** Moves the slot with its keys to another master, as `redis-cli --cluster reshard` does. Returns the address of that. */
  moveSlot(slot: number): Promise<string>
  stop(): Promise<void>
}

const MASTERS = 3
const MIGRATE_DEADLINE_MS = 5_000
/** Time without an answer after which the others take a node for failed. */
const NODE_TIMEOUT_MS = 1_500
const DEADLINE = { deadlineMs: 60_000, everyMs: 100 }

/** Starts six servers below this directory and makes them a cluster. */
export async function startRedisCluster(dir: string): Promise<RedisCluster> {
  const nodes: TestService[] = []
  const stop = async () => {
    await Promise.all(nodes.map(node => node.kill9()))
  }
  try {
    for (let i = 0; i < 2 * MASTERS; i++) nodes.push(await startNode(join(dir, `node-${i}`)))
    const addresses = nodes.map(({ url }) => new URL(url).host)
    const create = ['--cluster', 'create', ...addresses, '--cluster-replicas', '1', '--cluster-yes']
    await promisify(execFile)('redis-cli', ['--no-auth-warning', '-a', SERVER_PASSWORD, ...create])
    await until(
      'every node knows the whole cluster',
      async () => {
        const states = await Promise.all(nodes.map(isWhole))
        return states.every(Boolean)
      },
      DEADLINE,
    )
    return {
      url: `redis+cluster://default:${SERVER_PASSWORD}@${addresses.slice(0, 2).join(',')}`,
      nodes,
      async failOver(slot) {
        const master = await masterOf(nodes, slot)
        await master.kill9()
        const others = nodes.filter(node => node !== master)
        await until(
          'a replica is promoted',
          async () => {
            const promoted = await masterOf(others, slot).catch(() => undefined)
            return promoted !== undefined && promoted !== master
          },
          DEADLINE,
        )
        await master.restart()
        await until(
          'the cluster is whole again',
          async () => (await Promise.all(nodes.map(isWhole))).every(Boolean),
          DEADLINE,
        )
        return master.url
      },
      async moveSlot(slot) {
        const ranges = await slotsOf(nodes[0] as TestService)
        const [, , from] = rangeWith(ranges, slot)
        const [, , to] = ranges.find(([, , { id }]) => id !== from.id) as SlotRange
        const [source, target] = [nodeAt(nodes, from.port), nodeAt(nodes, to.port)]
        const setSlot = (node: TestService, ...state: [string, string]) =>
          ask(node, redis => redis.call('CLUSTER', 'SETSLOT', slot, ...state))
        await setSlot(target, 'IMPORTING', from.id)
        await setSlot(source, 'MIGRATING', to.id)
        const auth = ['AUTH2', 'default', SERVER_PASSWORD]
        await ask(source, async redis => {
          for (;;) {
            const keys = (await redis.call('CLUSTER', 'GETKEYSINSLOT', slot, 10)) as string[]
            if (keys.length === 0) return
            await redis.call('MIGRATE', '127.0.0.1', to.port, '', 0, MIGRATE_DEADLINE_MS, ...auth, 'KEYS', ...keys)
          }
        })
        // The new master is the first to know it, so that no slot has none if this process ends here.
        for (const node of [target, source, ...nodes.filter(node => node !== target && node !== source)]) {
          if (await isMaster(node)) await setSlot(node, 'NODE', to.id)
        }
        await until(
          'every node knows the new master',
          async () => {
            const seen = await Promise.all(nodes.map(node => slotsOf(node).catch(() => [])))
            return seen.every(found => found.length > 0 && rangeWith(found, slot)[2].id === to.id)
          },
          DEADLINE,
        )
        return target.url
      },
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

async function startNode(dir: string): Promise<TestService> {
  const [port, busPort] = [await freePort(), await freePort()]
  const settings = {
    'cluster-enabled': 'yes',
    'cluster-config-file': 'nodes.conf',
    'cluster-node-timeout': String(NODE_TIMEOUT_MS),
    'cluster-port': String(busPort),
    'cluster-announce-ip': '127.0.0.1',
    masterauth: SERVER_PASSWORD,
    'repl-diskless-sync-delay': '0',
  }
  return keepRestartable(() =>
    startRedis({ dir, port, password: SERVER_PASSWORD, maxMemory: '1gb', settings, log: () => {} }),
  )
}

async function ask<T>({ url }: TestService, work: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(url, { retryStrategy: () => null, maxRetriesPerRequest: 0, commandTimeout: 10_000 })
  redis.on('error', () => {})
  try {
    return await work(redis)
  } finally {
    redis.disconnect()
  }
}

/** Returns whether a node sees all slots, and all masters with a replica in step. */
async function isWhole(node: TestService): Promise<boolean> {
  const read = ask(node, async redis => {
    const [info, slots, role] = await Promise.all([
      redis.call('CLUSTER', 'INFO') as Promise<string>,
      redis.call('CLUSTER', 'SLOTS') as Promise<unknown[][]>,
      redis.info('replication'),
    ])
    const hasReplicas = slots.every(range => range.length === 4)
    const inStep = /^role:slave/m.test(role) ? /^master_link_status:up/m.test(role) : /slave0:.*state=online/.test(role)
    return /cluster_state:ok/.test(info) && slots.length >= MASTERS && hasReplicas && inStep
  })
  return read.catch(() => false)
}

type SlotRange = [first: number, last: number, master: { readonly id: string; readonly port: number }]

async function slotsOf(node: TestService): Promise<SlotRange[]> {
  const ranges = await ask(
    node,
    redis => redis.call('CLUSTER', 'SLOTS') as Promise<[number, number, [string, number, string]][]>,
  )
  return ranges.map(([first, last, [, port, id]]) => [first, last, { id, port }])
}

function rangeWith(ranges: readonly SlotRange[], slot: number): SlotRange {
  const range = ranges.find(([first, last]) => slot >= first && slot <= last)
  if (range === undefined) throw new Error(`slot ${slot} has no master`)
  return range
}

function nodeAt(nodes: readonly TestService[], port: number): TestService {
  const node = nodes.find(({ url }) => Number(new URL(url).port) === port)
  if (node === undefined) throw new Error(`no node has the port ${port}`)
  return node
}

async function isMaster(node: TestService): Promise<boolean> {
  return /^role:master/m.test(await ask(node, redis => redis.info('replication')))
}

async function masterOf(nodes: readonly TestService[], slot: number): Promise<TestService> {
  for (const node of nodes) {
    const range = (await slotsOf(node).catch(() => [])).find(([first, last]) => slot >= first && slot <= last)
    const master = nodes.find(({ url }) => Number(new URL(url).port) === range?.[2].port)
    if (master !== undefined) return master
  }
  throw new Error(`slot ${slot} has no master`)
}
