import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A server that calls itself once and then waits for a signal. It has no listener for one. */
const server = createServer((_request, response) => response.end('ok'))
server.listen(0, '127.0.0.1', async () => {
  const { port } = server.address() as AddressInfo
  await fetch(`http://127.0.0.1:${port}/`)
  console.log('answered')
  process.stdin.on('data', () => console.info('the last words')).unref()
})
