import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'

/** Returns true if nothing listens on the port of this host. */
function isPortFree(port: number, host = '127.0.0.1'): Promise<boolean> {
  return new Promise(resolve => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen({ port, host, exclusive: true }, () => server.close(() => resolve(true)))
  })
}

/** The port of a claim is this much above the port that it keeps. */
const CLAIM_OFFSET = 8_500

/**
 * Returns a free port below the ephemeral range. The kernel does not assign such a port to an outgoing connection, so it
 * stays free while its server starts or restarts. Until this process ends, no process is given it again: it listens on a
 * port above it as a claim.
 */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 200; attempt++) {
    const port = randomInt(15_000, 15_000 + CLAIM_OFFSET)
    if ((await isPortFree(port)) && (await claims(port))) return port
  }
  throw new Error(`no free port between 15000 and ${15_000 + CLAIM_OFFSET}`)
}

function claims(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const claim = createServer(socket => socket.destroy()).unref()
    claim.once('error', () => resolve(false))
    claim.listen({ port: port + CLAIM_OFFSET, host: '127.0.0.1', exclusive: true }, () => resolve(true))
  })
}

/**
 * Returns a sentence about the ports that are not available, or undefined if all are. Waits `patienceMs` for them to
 * become free, because the children of a killed supervisor need a moment to end.
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
  const used: [name: string, port: number][] = []
  for (const [name, { port, host }] of ports) if (!(await becomesFree(port, host, until))) used.push([name, port])
  const [first, ...others] = used
  if (first === undefined) return undefined
  if (others.length === 0) {
    return `port ${first[1]} is in use: stop the process that uses it, or set ${first[0]} to another port`
  }
  const settings = used.map(([name]) => name)
  const more = others.map(([, port]) => String(port))
  return (
    `port ${first[1]} is in use, as ${more.length === 1 ? 'is' : 'are'} ${listed(more)}: ` +
    `stop the process that uses them, or set ${listed(settings)} to other ports`
  )
}

/** Returns `a`, `a and b`, or `a, b and c`. */
function listed(texts: readonly string[]): string {
  return texts.length < 2 ? texts.join('') : `${texts.slice(0, -1).join(', ')} and ${texts.at(-1)}`
}

/**
 * Returns the first port above `port` of 127.0.0.1 that is free and not in `taken`. Waits `patienceMs` for each to become
 * free, so that a server whose supervisor was killed has the same port after the next start.
 */
export async function nextFreePort(port: number, taken: ReadonlySet<number>, patienceMs = 4_000): Promise<number> {
  for (let next = port + 1; next <= 65_535; next++) {
    if (!taken.has(next) && (await becomesFree(next, '127.0.0.1', Date.now() + patienceMs))) return next
  }
  throw new Error(`no port above ${port} is free`)
}

async function becomesFree(port: number, host: string, until: number): Promise<boolean> {
  while (!(await isPortFree(port, host))) {
    if (Date.now() > until) return false
    await delay(100)
  }
  return true
}
