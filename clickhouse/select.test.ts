import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { TransientError } from '../shared/runtime/errors.ts'
import { countAwakeMs } from '../test/support/count-awake-ms.ts'
import { until } from '../test/support/until.ts'
import { type ClickHouseClient, type ClickHouseConnection, createClickHouse } from './client.ts'
import { selectChunks, selectRows } from './select.ts'

const open: (() => void)[] = []
afterEach(() => {
  for (const close of open.splice(0)) close()
})

/** Creates a client of a server that misbehaves in this way once the request has arrived. */
async function clientOf(
  answer: RequestListener,
  options?: Pick<ClickHouseConnection, 'maxConnections'>,
): Promise<ClickHouseClient> {
  const server: Server = createServer((request, response) => {
    request.resume().on('end', () => answer(request, response))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const client = createClickHouse({ url, ...options })
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
  selectChunks: (client: ClickHouseClient, signal: AbortSignal) =>
    selectChunks(client, { query: 'SELECT 1 FORMAT RowBinary', params: {}, signal }, () => {}),
}

describe.each(Object.entries(READS))('%s', (_, read) => {
  it.each<[string, RequestListener]>([
    ['never responds', () => {}],
    [
      'stops in the middle of its response',
      (_request, response) => void response.writeHead(200).write('[{"a":1}\n,{"a"'),
    ],
  ])('ends at the deadline when the server %s', async (_, answer) => {
    const client = await clientOf(answer)
    const awakeMs = countAwakeMs()
    await expect(read(client, AbortSignal.timeout(150))).rejects.toThrow(/did not respond in time/)
    expect(awakeMs()).toBeLessThan(1_000)
  })

  it.each<Record<string, string>>([{ 'transfer-encoding': 'chunked' }, { 'content-length': '100' }])(
    'reports a response with %o that breaks off as an error at once, not as a short result',
    async headers => {
      const client = await clientOf((_request, response) => {
        response.writeHead(200, headers).write('[{"a":1}]', () => response.destroy())
      })
      const reading = read(client, AbortSignal.timeout(5_000))
      await expect(reading).rejects.toThrow(TransientError)
      await expect(reading).rejects.toThrow(/the request to ClickHouse failed/)
    },
  )

  it('sends nothing if the deadline has already passed', async () => {
    const client = await clientOf(() => {})
    await expect(read(client, AbortSignal.abort())).rejects.toThrow(TransientError)
  })
})

describe('a kept connection', () => {
  /** Counts requests and connections; a request is answered as `answer` decides by its number. */
  async function countingClient(answer: (request: number, socket: Socket) => string | undefined) {
    const counts = { requests: 0, connections: 0 }
    const server = createServer((request, response) => {
      request.resume().on('end', () => {
        const body = answer(++counts.requests, request.socket)
        if (body !== undefined) response.end(body)
      })
    })
    server.on('connection', () => counts.connections++)
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const client = createClickHouse({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })
    open.push(() => {
      void client.close()
      server.closeAllConnections()
      server.close()
    })
    const read = (signal = AbortSignal.timeout(5_000)) => selectRows(client, { query: 'SELECT 1', params: {}, signal })
    return { counts, read, client }
  }

  it('serves the next read too', async () => {
    const { counts, read } = await countingClient(() => '[{"a":1}]')
    for (let i = 0; i < 3; i++) expect(await read()).toEqual([{ a: 1 }])
    expect(counts).toEqual({ requests: 3, connections: 1 })
  })

  it('that the server closes when the next read comes is replaced, and the read is sent again', async () => {
    const { counts, read } = await countingClient((request, socket) => {
      if (request !== 2) return '[]'
      socket.destroy()
      return undefined
    })
    for (let i = 0; i < 2; i++) expect(await read()).toEqual([])
    expect(counts).toEqual({ requests: 3, connections: 2 })
  })

  it('that is replaced leaves the read its deadline', async () => {
    const { counts, read } = await countingClient((request, socket) => {
      if (request === 2) socket.destroy()
      return request === 1 ? '[]' : undefined
    })
    await read()
    const awakeMs = countAwakeMs()
    await expect(read(AbortSignal.timeout(300))).rejects.toThrow(/did not respond in time/)
    expect(awakeMs()).toBeLessThan(1_000)
    expect(counts.requests).toBe(3)
  })

  it('fails its read when the client is closed, and is not replaced', async () => {
    const { counts, read, client } = await countingClient(request => (request === 1 ? '[]' : undefined))
    await read()
    const reading = read()
    const failed = expect(reading).rejects.toThrow(/connections to ClickHouse are closed/)
    await until('the second read has arrived', () => counts.requests === 2)
    await client.close()
    await failed
    await expect(read()).rejects.toThrow(/connections to ClickHouse are closed/)
    expect(counts).toEqual({ requests: 2, connections: 1 })
  })

  it('is not tried again when a new connection is lost too', async () => {
    const { counts, read } = await countingClient((_, socket) => {
      socket.destroy()
      return undefined
    })
    await expect(read()).rejects.toThrow(TransientError)
    expect(counts.requests).toBe(1)
  })
})

describe('the only connection', () => {
  /** Holds the first response back until the test ends it, and answers all further requests. */
  async function holdingClient() {
    const responses: ServerResponse[] = []
    const answer: RequestListener = (_request, response) => {
      if (responses.push(response) > 1) response.end('[]')
    }
    const client = await clientOf(answer, { maxConnections: 1 })
    const read = (signal = AbortSignal.timeout(5_000)) => selectRows(client, { query: 'SELECT 1', params: {}, signal })
    return {
      client,
      responses,
      read,
      firstArrived: () => until('the first read has arrived', () => responses.length === 1),
    }
  }

  it('serves the next read after one that has waited for it has given up', async () => {
    const { responses, read, firstArrived } = await holdingClient()
    const first = read()
    await firstArrived()
    const leaving = new AbortController()
    const second = read(leaving.signal)
    const third = read()
    leaving.abort()
    await expect(second).rejects.toThrow(TransientError)
    responses[0]?.end('[]')
    expect(await Promise.all([first, third])).toEqual([[], []])
    expect(responses).toHaveLength(2)
  })

  it('fails also the reads that wait for it when the client is closed', async () => {
    const { client, responses, read, firstArrived } = await holdingClient()
    const failures = [read(), read()].map(reading =>
      expect(reading).rejects.toThrow(/connections to ClickHouse are closed/),
    )
    await firstArrived()
    await client.close()
    await Promise.all(failures)
    expect(responses).toHaveLength(1)
  })

  it('is closed when its read gives up, and the next read has a new one', async () => {
    const { responses, read, firstArrived } = await holdingClient()
    const leaving = new AbortController()
    const first = read(leaving.signal)
    await firstArrived()
    const isClosed = new Promise(resolve => responses[0]?.on('close', resolve))
    leaving.abort()
    await expect(first).rejects.toThrow(TransientError)
    await isClosed
    expect(await read()).toEqual([])
  })
})
