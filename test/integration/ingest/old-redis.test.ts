import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePort } from '../../../deploy/local/ports.ts'
import { createDirectory } from '../../../shared/directory/directory.ts'
import { DurabilityWatch } from '../../../shared/queue/durability-watch.ts'
import { scriptsIn } from '../../../shared/runtime/redis/script.ts'
import { issueKey, openEdge } from '../../support/services/edge.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { startWorker } from '../../support/services/worker.ts'
import { until } from '../../support/until.ts'

const { redisUrl } = sharedServices()
const redis = new Redis(`${redisUrl}/13`)
const sockets = new Set<Socket>()
let old: Server
/** Address of the same server, which states a version before 7 to those that connect there. */
let oldUrl: string

beforeAll(async () => {
  await redis.flushdb()
  old = createServer(client => {
    const upstream = connect(Number(new URL(redisUrl).port), '127.0.0.1')
    client.pipe(upstream)
    // A version of the same length, because the reply states its own.
    upstream.on('data', data => {
      client.write(Buffer.from(data.toString('latin1').replace(/redis_version:\d/, 'redis_version:6'), 'latin1'))
    })
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        client.destroy()
        upstream.destroy()
      })
    }
  })
  const port = await freePort()
  await new Promise<void>(resolve => old.listen(port, '127.0.0.1', resolve))
  const url = new URL(`${redisUrl}/13`)
  url.port = String(port)
  oldUrl = url.href
})

afterAll(async () => {
  for (const socket of sockets) socket.destroy()
  old?.close()
  redis.disconnect()
})

it.each(['fsync', 'unchecked'])(
  'edge and workers are not ready on a Redis before 7.0, and name its version, with REDIS_DURABILITY=%s',
  async REDIS_DURABILITY => {
    const key = await issueKey(createDirectory(redis))
    const edge = await openEdge(oldUrl, { REDIS_DURABILITY })
    const worker = startWorker([], { REDIS_URL: oldUrl, DIRECTORY_REDIS_URL: oldUrl, REDIS_DURABILITY })
    const reason = /^redis of the queues: version 6\.\S+ is too old: Redis 7\.0 or later is needed$/
    try {
      await until('the edge names the version', () => reason.test(String(edge.isReady())))
      await until('the worker does, too', () => reason.test(String(worker.isReady())))
      const headers = { 'content-type': 'application/json', 'x-service-public-key': key }
      const response = await fetch(`${edge.baseUrl}/drain/v1/traces`, { method: 'POST', headers, body: '{}' })
      expect(response.status).toBe(503)
      expect(await response.json()).toMatchObject({ code: 'INGEST_INFRA_UNAVAILABLE' })
    } finally {
      await edge.stop()
      await worker.stop()
    }
  },
)

it('the directory must be one of 7.0 or later, too', async () => {
  const edge = await openEdge(`${redisUrl}/13`, { DIRECTORY_REDIS_URL: oldUrl })
  try {
    await until('the edge names the directory', () =>
      /^redis of the directory: version 6\.\S+ is too old/.test(String(edge.isReady())),
    )
  } finally {
    await edge.stop()
  }
})

// The last one, because this process has the script from now on.
it('nothing is acknowledged by a Redis that cannot compile a script, which the reason names', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'penstock-scripts-'))
  await writeFile(join(dir, 'broken.lua'), '#!lua flags=allow-oom\nreturn redis.call(\n')
  scriptsIn(pathToFileURL(`${dir}/`))('broken')
  const logger = pino({ level: 'silent' })
  const promise = { REDIS_DURABILITY: 'unchecked', REDIS_MIN_REPLICAS: 1 } as const
  const watch = new DurabilityWatch({ redis, store: 'queues', logger, reconnect: () => {} }, promise)
  try {
    await until('the reason names the script', () => watch.fault?.includes('cannot compile the script broken: '))
    expect(watch.refuse()).toMatchObject({ code: 'INGEST_INFRA_UNAVAILABLE' })
  } finally {
    watch.stop()
    await rm(dir, { recursive: true })
  }
})
