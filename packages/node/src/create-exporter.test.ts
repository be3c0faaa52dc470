import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { gunzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createRecordExporter } from './create-exporter.ts'
import { createPendingRecords } from './pending-records.ts'

const server = createServer(async (request, response) => {
  const body = await buffer(request)
  received.push(`${request.headers['x-key']} ${gunzipSync(body)}`)
  answer(response)
})
let received: string[]
let answer: (response: ServerResponse) => void
let url: string

beforeEach(async () => {
  received = []
  answer = response => response.end()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/logs`
})
afterEach(() => {
  server.closeAllConnections()
  server.close()
})

function setUp() {
  const failures: string[] = []
  const pending = createPendingRecords<string>(100)
  const destination = { url, headers: { 'x-key': 'k' }, isCompressed: true }
  const serialize = (batch: string[]) => Buffer.from(batch.join())
  const onFailure = ({ message }: Error) => failures.push(message)
  const exporter = createRecordExporter({ destination, serialize, timeoutMs: 500, onFailure }, pending)
  const send = async (...batch: string[]) => {
    for (const record of batch) pending.add(record)
    exporter.export(batch, () => {})
    await exporter.forceFlush()
  }
  return { send, pending, failures }
}

describe('an exporter', () => {
  it('sends a batch with its headers, compressed, and forgets its records', async () => {
    const { send, pending, failures } = setUp()
    await send('a', 'b')
    expect(received).toEqual(['k a,b'])
    expect([pending.take(), failures]).toEqual([[], []])
  })

  it('repeats a request that the service refuses for now, after the time that it states', async () => {
    const { send, failures } = setUp()
    answer = response => {
      const isFirst = received.length === 1
      response.writeHead(isFirst ? 503 : 200, isFirst ? { 'retry-after': '1' } : {}).end()
    }
    await send('a')
    expect([received, failures]).toEqual([['k a', 'k a'], []])
  })

  it('repeats a request without an answer', async () => {
    const { send, failures } = setUp()
    answer = response => void (received.length > 1 && response.end())
    await send('a')
    expect([received, failures]).toEqual([['k a', 'k a'], []])
  })

  it('gives up a request that the service refuses for good', async () => {
    const { send, pending, failures } = setUp()
    answer = response => response.writeHead(401).end()
    await send('a')
    expect(failures).toEqual(['the service answered 401 Unauthorized'])
    expect([received.length, pending.take()]).toEqual([1, []])
  })

  it('bounds the requests that wait', async () => {
    const { send, failures } = setUp()
    answer = () => {}
    const waiting = Array.from({ length: 40 }, () => send('a'))
    await expect.poll(() => failures.length).toBe(10)
    expect(failures[0]).toBe('too many requests wait for an answer')
    answer = response => response.end()
    await Promise.all(waiting)
  })

  it('keeps no process alive, neither by a request nor by a pause', async () => {
    answer = () => {}
    for (const target of [url, 'http://127.0.0.1:1/']) {
      const program = `
        import { gzipSync } from 'node:zlib'
        import { sendInBackground } from ${JSON.stringify(join(import.meta.dirname, 'send-in-background.ts'))}
        const request = { url: ${JSON.stringify(target)}, headers: {}, body: gzipSync('') }
        void sendInBackground(request, { timeoutMs: 60_000, retryForMs: 60_000 })
        setTimeout(() => {}, 200)`
      const child = spawn(process.execPath, ['--input-type=module', '--eval', program])
      const timer = setTimeout(() => child.kill('SIGKILL'), 20_000)
      expect(await once(child, 'exit'), target).toEqual([0, null])
      clearTimeout(timer)
    }
  })
})
