import { createServer, type Server } from 'node:net'
import { afterEach, expect, it } from 'vitest'
import { createAdminServer } from '../admin-server.ts'
import { ConfigError } from '../config.ts'
import { createLogger } from '../logger.ts'
import { createMetrics } from '../metrics.ts'
import { listenAt } from './listen-at.ts'

const SETTINGS = { hostSetting: 'ADMIN_BIND_HOST', portSetting: 'WORKERS_ADMIN_PORT' } as const
const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

function adminServer() {
  const isReady = () => true
  const { registry } = createMetrics('test')
  const server = createAdminServer({ registry, isLive: isReady, isReady, logger: createLogger('test', 'fatal') })
  closing.push(() => server.close())
  return server
}

/** Takes a port of this machine. */
async function takePort(): Promise<number> {
  const server: Server = createServer()
  closing.push(() => new Promise(resolve => server.close(resolve)))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the server has no port')
  return address.port
}

it('names the setting of a port that is in use, also where the server does not say why it cannot listen', async () => {
  const port = await takePort()
  const silent = { listen: () => Promise.reject(new Error('cannot listen')) }
  for (const server of [adminServer(), silent]) {
    const fault = listenAt(server, { ...SETTINGS, host: '127.0.0.1', port })
    await expect(fault).rejects.toThrow(ConfigError)
    await expect(fault).rejects.toThrow(
      `port ${port} is in use: stop the process that uses it, or set WORKERS_ADMIN_PORT to another port`,
    )
  }
})

it('names the setting of an address that this machine does not have', async () => {
  // A block for documentation (RFC 5737).
  await expect(listenAt(adminServer(), { ...SETTINGS, host: '192.0.2.1', port: 0 })).rejects.toThrow(
    'this machine has no address 192.0.2.1: set ADMIN_BIND_HOST to one of its own',
  )
})

it('returns the port where nothing is in the way', async () => {
  expect(await listenAt(adminServer(), { ...SETTINGS, host: '127.0.0.1', port: 0 })).toBeGreaterThan(0)
})
