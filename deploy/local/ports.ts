import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'

/** True when nothing listens on the port of this address. */
export function isPortFree(port: number, host = '127.0.0.1'): Promise<boolean> {
  return new Promise(resolve => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen({ port, host, exclusive: true }, () => server.close(() => resolve(true)))
  })
}

/**
 * A free port below the ephemeral range: one that the kernel will not hand to an outgoing connection while the server
 * that had it is being restarted.
 */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 200; attempt++) {
    const port = randomInt(15_000, 32_000)
    if (await isPortFree(port)) return port
  }
  throw new Error('no free port between 15000 and 32000')
}

/**
 * One sentence about the first port that cannot be had, undefined when all can. Waits `patienceMs` for a port to come
 * free: the children of a supervisor that was killed need a moment to notice.
 */
export async function portFault(
  ports: ReadonlyMap<string, { port: number; host: string }>,
  patienceMs = 4_000,
): Promise<string | undefined> {
  const names = new Map<number, string>()
  for (const [name, { port }] of ports) {
    const other = names.get(port)
    if (other) return `${other} and ${name} are both ${port}: give one of them another port`
    names.set(port, name)
  }
  const until = Date.now() + patienceMs
  for (const [name, { port, host }] of ports) {
    while (!(await isPortFree(port, host))) {
      if (Date.now() > until) return `port ${port} is in use: stop what uses it, or set ${name} to another port`
      await delay(100)
    }
  }
  return undefined
}
