import { pino } from 'pino'
import { MIB } from '../../schemas/units.ts'
import { createHttpServer } from '../../shared/http/server/server.ts'

/**
 * Serves a route that stores nothing on the product's HTTP server. The difference to the edge is the edge's own work.
 */
const server = createHttpServer({
  logger: pino({ level: 'warn' }),
  heldBodyLimitBytes: 256 * MIB,
  routes: [
    {
      method: 'POST',
      path: '/drain/v1/:signal',
      bodyLimitBytes: 20 * MIB,
      cors: true,
      accept: () => () => ({ status: 200, headers: [['content-type', 'application/x-protobuf']] }),
    },
    { method: 'GET', path: '/readyz', bodyLimitBytes: 0, accept: () => ({ status: 200, body: 'ok\n' }) },
  ],
})
await server.listen('127.0.0.1', Number(process.env.PORT))
process.once('SIGTERM', () => process.exit(0))
