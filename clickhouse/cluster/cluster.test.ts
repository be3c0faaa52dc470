import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, it } from 'vitest'
import { TransientError } from '../../shared/runtime/errors.ts'
import { type ClickHouseClient, insertNative } from '../client.ts'
import { selectRows } from '../select.ts'
import { createClusterClient } from './cluster.ts'

const open: (() => void)[] = []
afterEach(() => {
  for (const close of open.splice(0)) close()
})

/** A server that states its shard and their number, and keeps the other requests. */
interface FakeServer {
  readonly url: string
  readonly requests: string[]
  /** Deduplication token and quorum of each of them. */
  readonly tokens: readonly (readonly (string | null)[])[]
  close(): void
}

async function serverOf(shard: number, shards: number): Promise<FakeServer> {
  const requests: string[] = []
  const tokens: (readonly (string | null)[])[] = []
  const server: Server = createServer((request, response) => {
    let body = ''
    request.on('data', chunk => {
      body += chunk
    })
    request.on('end', () => {
      const settings = new URL(request.url ?? '', 'http://_').searchParams
      const query = settings.get('query') ?? body
      if (query.includes('shard_maps')) return response.end(`${JSON.stringify({ shard, shards, beginsAtMs: 0 })}\n`)
      requests.push(query)
      tokens.push([settings.get('insert_deduplication_token'), settings.get('insert_quorum')])
      return response.end('[]')
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const close = () => {
    server.closeAllConnections()
    server.close()
  }
  open.push(close)
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests, tokens, close }
}

function clientOf(...shards: readonly (readonly FakeServer[])[]): ClickHouseClient {
  const addresses = shards.map(replicas => replicas.map(({ url }) => url))
  const client = createClusterClient({ addresses, database: 'penstock', isReplicated: true })
  open.push(() => void client.close())
  return client
}

const read = (client: ClickHouseClient) =>
  selectRows(client, { query: 'SELECT 1', params: {}, signal: AbortSignal.timeout(5_000) })
const insert = (client: ClickHouseClient, shard: number) =>
  client.shards?.onShard(shard, replica =>
    insertNative(replica, { table: 'spans', block: [Buffer.alloc(1)], deduplicationToken: 'token', timeoutMs: 5_000 }),
  )

it('uses the other replica of a shard while one does not answer', async () => {
  const [a, b] = [await serverOf(0, 1), await serverOf(0, 1)]
  const client = clientOf([a, b])
  a.close()
  for (let i = 0; i < 4; i++) {
    await read(client)
    await insert(client, 0)
  }
  expect(b.requests).toHaveLength(8)
})

it('repeats an insert with its token on another replica, with a quorum', async () => {
  const [a, b] = [await serverOf(0, 1), await serverOf(0, 1)]
  const client = clientOf([a, b])
  const used: string[] = []
  await client.shards?.onShard(0, async replica => {
    used.push(String(used.length))
    if (used.length === 1) throw new Error('read ECONNRESET')
    await insertNative(replica, { table: 'spans', block: [Buffer.alloc(1)], deduplicationToken: 't', timeoutMs: 5_000 })
  })
  expect(used).toEqual(['0', '1'])
  expect([...a.tokens, ...b.tokens]).toEqual([['t', 'auto']])
})

it('fails with a passing fault while no replica of a shard answers, and uses the others', async () => {
  const [a, b] = [await serverOf(0, 2), await serverOf(1, 2)]
  const client = clientOf([a], [b])
  expect(await client.shards?.active()).toBe(2)
  b.close()
  await insert(client, 0)
  await expect(insert(client, 1)).rejects.toThrow(TransientError)
  expect(a.requests).toHaveLength(1)
})

it('divides no rows between servers in another order than before', async () => {
  const client = clientOf([await serverOf(1, 2)], [await serverOf(0, 2)])
  await expect(client.shards?.active()).rejects.toThrow('is the shard 2 of ClickHouse, but has the place of 1')
  expect(client.shards?.fault).toBeDefined()
})

it('divides no rows between fewer servers than before', async () => {
  const client = clientOf([await serverOf(0, 2)])
  await expect(client.shards?.active()).rejects.toThrow('CLICKHOUSE_URL has 1 shards, but rows are divided between 2')
})

it('refuses what concerns single shards without naming one', () => {
  const client = createClusterClient({ addresses: [['http://127.0.0.1:1']], database: 'penstock', isReplicated: false })
  open.push(() => void client.close())
  expect(() => client.command({ query: 'TRUNCATE spans' })).toThrow('use onEachShard')
})
