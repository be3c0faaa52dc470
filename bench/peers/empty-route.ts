import { uws } from '../../shared/http/uws.ts'

/** The physical bound of an edge: uWebSockets.js alone, reading each body and answering 200 as the product does. */
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
    if (!socket) throw new Error(`port ${process.env.PORT} cannot be had`)
  })
process.once('SIGTERM', () => process.exit(0))
