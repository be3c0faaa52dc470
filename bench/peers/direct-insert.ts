import { createClient } from '@clickhouse/client'
import { fastify } from 'fastify'
import { MIB } from '../../schemas/units.ts'
import { createRowInserter } from './row-inserter.ts'
import { decodeTraceRows } from './trace-rows.ts'

/**
 * Serves traces without a queue. Fastify decodes each request with protobufjs, inserts its rows as JSONEachRow together
 * with those of other requests, and responds when ClickHouse has confirmed them. An acknowledged request is stored, but
 * the edge fails when ClickHouse is unavailable. Settings as ClickHouse's "Asynchronous inserts" recommends, with
 * `wait_for_async_insert`.
 */
const clickhouse = createClient({
  url: process.env.CLICKHOUSE_URL ?? '',
  database: process.env.CLICKHOUSE_DATABASE ?? '',
  max_open_connections: 1_000,
})
const insertRows = createRowInserter(clickhouse, {
  table: 'otel_traces',
  gatherIn: process.env.GATHER_IN === 'server' ? 'server' : 'process',
  // The defaults of ClickHouse. With 20 and 40 MB, inserts are three times as large and responses later, without more
  // spans a second.
  async_insert_busy_timeout_max_ms: 200,
  async_insert_max_data_size: 10 * MIB,
})
const keys = new Map([[process.env.PUBLIC_KEY ?? '', { workspaceId: 'ws_1', surfaceId: 'srf_1' }]])

const app = fastify({ logger: false, bodyLimit: 20 * MIB, keepAliveTimeout: 60_000 })
app.addContentTypeParser('application/x-protobuf', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
app.get('/readyz', async () => 'ok\n')
app.post('/drain/v1/traces', async (request, reply) => {
  const surface = keys.get(String(request.headers['x-service-public-key']))
  if (surface === undefined) return reply.code(401).send({ message: 'unknown key' })
  const rows = decodeTraceRows(request.body as Buffer, { ...surface, receivedAtMs: Date.now() })
  await insertRows(rows.map(row => `${JSON.stringify(row)}\n`).join(''))
  reply.header('content-type', 'application/x-protobuf')
  return reply.send('')
})
await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT) })
process.once('SIGTERM', () => process.exit(0))
