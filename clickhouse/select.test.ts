import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { TransientError } from '../shared/runtime/errors.ts'
import { countAwakeMs } from '../test/support/count-awake-ms.ts'
import { type ClickHouseClient, createClickHouse } from './client.ts'
import { selectBinary, selectRows } from './select.ts'

const open: (() => void)[] = []
afterEach(() => {
  for (const close of open.splice(0)) close()
})

/** Creates a client of a server that misbehaves in this way once the request has arrived. */
async function clientOf(answer: RequestListener): Promise<ClickHouseClient> {
  const server: Server = createServer((request, response) => {
    request.resume().on('end', () => answer(request, response))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const client = createClickHouse({ url })
  open.push(() => {
    void client.close()
    server.closeAllConnections()
    server.close()
  })
  return client
}

const READS = {
  selectRows: (client: ClickHouseClient, signal: AbortSignal) =>
    selectRows(client, { query: 'SELECT 1', params: {}, signal }),
  selectBinary: (client: ClickHouseClient, signal: AbortSignal) =>
    selectBinary(client, { query: 'SELECT 1 FORMAT RowBinary', params: {}, signal }, () => {}),
}

describe.each(Object.entries(READS))('%s', (_, read) => {
  it.each<[string, RequestListener]>([
    ['never responds', () => {}],
    [
      'stops in the middle of its response',
      (_request, response) => void response.writeHead(200).write('{"a":1}\n{"a"'),
    ],
  ])('ends at the deadline when the server %s', async (_, answer) => {
    const client = await clientOf(answer)
    const awakeMs = countAwakeMs()
    await expect(read(client, AbortSignal.timeout(150))).rejects.toThrow(/did not respond in time/)
    expect(awakeMs()).toBeLessThan(1_000)
  })

  it('reports a response that breaks off as an error, not as a short result', async () => {
    const client = await clientOf((_request, response) => {
      response.writeHead(200, { 'transfer-encoding': 'chunked' }).write('{"a":1}\n', () => response.destroy())
    })
    await expect(read(client, AbortSignal.timeout(5_000))).rejects.toThrow(TransientError)
  })

  it('sends nothing if the deadline has already passed', async () => {
    const client = await clientOf(() => {})
    await expect(read(client, AbortSignal.abort())).rejects.toThrow(TransientError)
  })
})
