import { createServer } from 'node:net'
import { expect, it } from 'vitest'
import { freePort, portFault } from './ports.ts'

const host = '127.0.0.1'

it('gives no port twice, although nothing listens on it yet', async () => {
  const ports: number[] = []
  for (let i = 0; i < 400; i++) ports.push(await freePort())
  expect(new Set(ports).size).toBe(ports.length)
})

it('names the setting that changes a port in use', async () => {
  const port = await freePort()
  const server = createServer()
  await new Promise<void>(resolve => server.listen(port, host, resolve))
  const ports = new Map([['API_PORT', { port, host }]])
  expect(await portFault(ports, 0)).toBe(
    `port ${port} is in use: stop the process that uses it, or set API_PORT to another port`,
  )
  const soonFree = portFault(ports, 5_000)
  server.close()
  expect(await soonFree).toBeUndefined()
})

it('names all ports in use at once', async () => {
  const servers = await Promise.all(
    ['API_PORT', 'S3_PORT', 'REDIS_PORT'].map(async name => {
      const port = await freePort()
      const server = createServer()
      await new Promise<void>(resolve => server.listen(port, host, resolve))
      return { name, port, server }
    }),
  )
  const ports = new Map(servers.map(({ name, port }) => [name, { port, host }]))
  ports.set('INGEST_PORT', { port: await freePort(), host })
  const [api, s3, redis] = servers.map(({ port }) => port)
  expect(await portFault(ports, 0)).toBe(
    `port ${api} is in use, as are ${s3} and ${redis}: ` +
      'stop the process that uses them, or set API_PORT, S3_PORT and REDIS_PORT to other ports',
  )
  for (const { server } of servers) server.close()
})

it('names both settings when two have the same port', async () => {
  const port = await freePort()
  const ports = new Map([
    ['API_PORT', { port, host }],
    ['S3_PORT', { port, host }],
  ])
  expect(await portFault(ports, 0)).toBe(`API_PORT and S3_PORT are both ${port}: give one of them another port`)
})
