import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { MIB } from '../../../schemas/units.ts'
import { openSoftenedPort, type SoftenedPort } from '../../support/cluster/softened-port.ts'

const server = createServer({ allowHalfOpen: true })
let port: SoftenedPort

beforeEach(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  port = await openSoftenedPort((server.address() as AddressInfo).port)
})
afterEach(async () => {
  await port.close()
  server.close()
  await once(server, 'close')
})

/** Connects through the port, and returns both ends. */
async function connectBoth(): Promise<[client: Socket, served: Socket]> {
  const client = connect({ host: '127.0.0.1', port: port.port, allowHalfOpen: true })
  const [served] = (await once(server, 'connection')) as [Socket]
  return [client, served]
}

/** Returns the number of bytes until the other end ends the connection. Rejects if it is reset instead. */
function bytesUntilEnd(socket: Socket): Promise<number> {
  return new Promise((resolve, reject) => {
    let bytes = 0
    socket.on('data', (chunk: Buffer) => {
      bytes += chunk.length
    })
    socket.once('end', () => resolve(bytes)).once('error', reject)
  })
}

it('passes bytes on in both directions, and the end of one before that of the other', async () => {
  const [client, served] = await connectBoth()
  client.end(Buffer.alloc(MIB))
  expect(await bytesUntilEnd(served)).toBe(MIB)
  served.end(Buffer.alloc(2 * MIB))
  expect(await bytesUntilEnd(client)).toBe(2 * MIB)
})

it('ends a connection for the server that the client has reset, and takes what the server still sends', async () => {
  const [client, served] = await connectBoth()
  client.write('query')
  await once(served, 'data')
  const end = bytesUntilEnd(served)
  // More than all buffers between them hold, and the client reads nothing.
  const sent = new Promise<unknown>(resolve => served.write(Buffer.alloc(32 * MIB), resolve))
  client.resetAndDestroy()
  expect(await end).toBe(0)
  expect(await sent).toBeFalsy()
  served.end()
})

it('ends a connection for the client when the server is gone', async () => {
  const [client, served] = await connectBoth()
  served.resetAndDestroy()
  expect(await bytesUntilEnd(client)).toBe(0)
  client.end()
})
