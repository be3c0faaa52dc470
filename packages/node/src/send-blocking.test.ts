import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, it } from 'vitest'
import { sendBlocking } from './send-blocking.ts'

it('sends everything from the exit event, while nothing else of the program runs', async () => {
  const received: string[] = []
  const server = createServer(async (request, response) => {
    received.push(`${request.url} ${request.headers['x-key']} ${await text(request)}`)
    response.end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const program = `
    import { sendBlocking } from ${JSON.stringify(join(import.meta.dirname, 'send-blocking.ts'))}
    const request = path => ({ url: ${JSON.stringify(base)} + path, headers: { 'x-key': 'k' }, body: Buffer.from('body of ' + path) })
    setImmediate(() => console.log('never'))
    process.on('exit', () => sendBlocking([request('/a'), request('/b'), { ...request('/c'), url: 'nowhere' }], 10_000))
    process.exit(3)`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program])
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')])
  expect({ output, code }).toEqual({ output: '', code: 3 })
  expect(received.sort()).toEqual(['/a k body of /a', '/b k body of /b'])
  server.close()
})

it('gives up at the deadline', async () => {
  // The system accepts connections for it while this thread stands still.
  const silent = createTcpServer().listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const { port } = silent.address() as AddressInfo
  const startedAt = performance.now()
  sendBlocking([{ url: `http://127.0.0.1:${port}/`, headers: {}, body: Buffer.from('') }], 300)
  const tookMs = performance.now() - startedAt
  expect(tookMs).toBeGreaterThanOrEqual(299)
  expect(tookMs).toBeLessThan(3_000)
  silent.close()
})
