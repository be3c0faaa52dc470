import { uws } from '../../shared/http/server/uws.ts'

/** Measures the limit of an edge: uWebSockets.js alone reads each body and returns 200 like the product. */
uws
  .App()
  .post('/drain/v1/traces', res => {
    res.onAborted(() => {})
    res.onData((_chunk, isLast) => {
      if (isLast) res.cork(() => res.writeHeader('content-type', 'application/x-protobuf').end())
    })
  })
  .get('/readyz', res => void res.end('ok\n'))
  .listen('127.0.0.1', Number(process.env.PORT), socket => {
    if (!socket) throw new Error(`port ${process.env.PORT} is not available`)
  })
process.once('SIGTERM', () => process.exit(0))
