import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { afterEach, describe, expect, it } from 'vitest'
import { createAuthority } from '../../test/support/proxy/certificates.ts'
import { type HostileReceiver, startHostileReceiver } from '../../test/support/receivers/hostile-receiver.ts'
import { until } from '../../test/support/until.ts'
import { type PostDeps, type PostRequest, post } from './post.ts'
import { PUBLIC_ONLY, parseAllowedReceivers } from './receiver-address.ts'

/** Long enough for a busy machine, where the receiver is not expected to reach it. */
const LATE_MS = 10_000
const NOW_MS = Date.parse('2026-11-23T12:00:00Z')
const SOON_MS = 1_000
const started: HostileReceiver[] = []

afterEach(async () => {
  for (const receiver of started.splice(0)) await receiver.stop()
})

async function start(...[answer, options]: Parameters<typeof startHostileReceiver>): Promise<HostileReceiver> {
  const receiver = await startHostileReceiver(answer, options)
  started.push(receiver)
  return receiver
}

function allowing(text: string) {
  const result = parseAllowedReceivers(text)
  if (!result.ok) throw new Error(result.fault)
  return result.allowed
}

const noLookup = async (host: string) => {
  throw new Error(`${host} was looked up`)
}
const deps: PostDeps = { lookup: noLookup, allowed: allowing('127.0.0.0/8'), deadlineMs: LATE_MS, now: () => NOW_MS }
const soon: PostDeps = { ...deps, deadlineMs: SOON_MS }

const requestTo = (port: number, more: Partial<PostRequest> = {}): PostRequest => ({
  ...{ url: `http://127.0.0.1:${port}/services/T0001/B0001/hidden-token?key=a`, headers: {}, body: '{}', secrets: [] },
  ...more,
})

/** Sends to a receiver that answers with these bytes and leaves the connection open. */
async function answered(bytes: string, more: Partial<PostRequest> = {}, by: PostDeps = deps) {
  const { port } = await start(socket => socket.write(bytes))
  return post(by, requestTo(port, more))
}

const http = (status: string, headers = '', body = '') =>
  `HTTP/1.1 ${status}\r\n${headers}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`

describe('a delivery', () => {
  it('is a POST of the exact body, over a connection that is closed after the answer', async () => {
    const receiver = await start(socket => socket.write(http('200 OK', '', 'ok')))
    const body = '{"title":"Größe",  "n":1.0}'
    const outcome = await post(deps, requestTo(receiver.port, { body, headers: { 'webhook-id': 'evt_1' } }))
    expect(outcome).toEqual({ kind: 'delivered', status: 200, answer: 'ok', durationMs: expect.any(Number) })
    const [head = '', sent] = receiver.requests[0]?.split('\r\n\r\n') ?? []
    expect(sent).toBe(body)
    expect(head).toMatch(/^POST \/services\/T0001\/B0001\/hidden-token\?key=a HTTP\/1\.1\r\n/)
    for (const line of ['content-type: application/json', 'webhook-id: evt_1', `Host: 127.0.0.1:${receiver.port}`]) {
      expect(head).toContain(line)
    }
    await until('the connection is closed', () => receiver.open.size === 0)
  })

  it('is decided by the status', async () => {
    const outcomeOf = async (status: string, headers = '') => {
      const { durationMs, ...outcome } = await answered(http(status, headers))
      return outcome
    }
    expect(await outcomeOf('204 No Content')).toEqual({ kind: 'delivered', status: 204 })
    expect(await outcomeOf('410 Gone')).toMatchObject({ kind: 'gone', status: 410 })
    const reason = 'the receiver answered 500'
    expect(await outcomeOf('500 Error', 'Retry-After: 5\r\n')).toEqual({ kind: 'failed', status: 500, reason })
    expect(await outcomeOf('404 Not Found')).toMatchObject({ kind: 'failed', status: 404 })
  })

  it('is repeated no earlier than a receiver requests that has too much to do, and within a day', async () => {
    const waitOf = async (header: string, status = '429 Too Many Requests') =>
      (await answered(http(status, `Retry-After: ${header}\r\n`))).retryAfterMs
    expect(await waitOf('120')).toBe(120_000)
    expect(await waitOf('120', '503 Unavailable')).toBe(120_000)
    expect(await waitOf('9999999999')).toBe(86_400_000)
    expect(await waitOf('Mon, 23 Nov 2026 13:00:00 GMT')).toBe(3_600_000)
    expect(await waitOf('Mon, 23 Nov 2026 11:00:00 GMT')).toBe(0)
    for (const header of ['', '-1x', 'soon', '1e9']) expect(await waitOf(header)).toBeUndefined()
  })
})

describe('a redirect', () => {
  it('is never followed, neither to the receiver itself nor to a metadata service', async () => {
    for (const target of ['/again', 'http://169.254.169.254/latest/meta-data/', '//127.0.0.1/']) {
      for (const status of ['301 Moved', '302 Found', '307 Temporary Redirect', '308 Permanent Redirect']) {
        const receiver = await start(socket => socket.write(http(status, `Location: ${target}\r\n`)))
        const outcome = await post(deps, requestTo(receiver.port))
        expect(outcome).toMatchObject({ kind: 'failed', reason: expect.stringMatching(/^redirects are not followed/) })
        expect(JSON.stringify(outcome)).not.toContain(target)
        expect(receiver.requests).toHaveLength(1)
      }
    }
  })
})

describe('a hostile receiver', () => {
  const late = { kind: 'failed', reason: 'no answer within 1 s' }

  it('that never answers ends at the deadline, and its connection is closed', async () => {
    const receiver = await start(() => {})
    const outcome = await post(soon, requestTo(receiver.port))
    expect(outcome).toMatchObject(late)
    expect(outcome.durationMs).toBeGreaterThanOrEqual(SOON_MS - 10)
    await until('the connection is closed', () => receiver.open.size === 0)
  })

  it('that answers slowly ends at the deadline, whatever it sends', async () => {
    const trickle = (bytes: string) => (socket: Socket) => {
      socket.write(bytes)
      const timer = setInterval(() => socket.write('a'), 20)
      socket.on('close', () => clearInterval(timer))
    }
    const inHead = await start(trickle('HTTP/1.1 200 OK\r\nx: '))
    expect(await post(soon, requestTo(inHead.port))).toMatchObject(late)
    const inBody = await start(trickle('HTTP/1.1 500 Error\r\n\r\na'))
    expect(await post(soon, requestTo(inBody.port))).toMatchObject({
      ...{ kind: 'failed', status: 500, answer: expect.stringMatching(/^a+$/) },
    })
    await until('the connection is closed', () => inBody.open.size === 0)
    const informs = await start(trickle('HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 2'))
    expect(await post(soon, requestTo(informs.port))).toMatchObject({ kind: 'failed' })
  })

  it('that sends a body without an end is cut off', async () => {
    const receiver = await start(socket => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      const flood = () => {
        while (!socket.destroyed && socket.write('b'.repeat(65_536)));
      }
      socket.on('drain', flood)
      flood()
    })
    const outcome = await post(deps, requestTo(receiver.port))
    expect(outcome).toMatchObject({ kind: 'delivered', status: 200, answer: 'b'.repeat(1_000) })
    await until('the connection is closed', () => receiver.open.size === 0)
  })

  it.each([
    ['garbage', 'garbage\r\n\r\n', 'the answer is not HTTP'],
    ['a banner of SSH', 'SSH-2.0-OpenSSH_9.2\r\n', 'the answer is not HTTP'],
    ['binary data', '\x00\x01\xff\r\n', 'the answer is not HTTP'],
    ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n', 'the answer is not HTTP'],
    [
      'endless headers',
      `HTTP/1.1 200 OK\r\n${`x: ${'y'.repeat(100)}\r\n`.repeat(100)}`,
      'the answer has more than 8192 bytes of headers',
    ],
    ['an upgrade', 'HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n', 'the connection failed'],
  ])('that answers with %s makes the attempt fail', async (_name, bytes, reason) => {
    expect(await answered(bytes)).toEqual({ kind: 'failed', reason, durationMs: expect.any(Number) })
  })

  it('that closes or refuses the connection makes the attempt fail', async () => {
    const closed = 'the receiver closed the connection without an answer'
    for (const close of [(socket: Socket) => socket.end(), (socket: Socket) => socket.resetAndDestroy()]) {
      const { port } = await start(close)
      expect(await post(deps, requestTo(port))).toMatchObject({ kind: 'failed', reason: closed })
    }
    const { port, stop } = await start(() => {})
    await stop()
    expect(await post(deps, requestTo(port))).toMatchObject({ reason: 'the receiver refused the connection' })
  })

  it('that closes the connection within the body has answered', async () => {
    const { port } = await start(socket => socket.end('HTTP/1.1 400 Bad\r\ncontent-length: 100\r\n\r\ninvalid'))
    expect(await post(deps, requestTo(port))).toMatchObject({ kind: 'failed', status: 400, answer: 'invalid' })
  })

  it('that echoes the request gets none of its secrets into the outcome', async () => {
    const key = 'R0UT1NGKEY/0123456789'
    const { port } = await start((socket, request) => {
      const echoed = `${request}\n${JSON.stringify({ request }).replaceAll('/', '\\/')}\n\x1b[31m`
      socket.write(http('400 Bad', `x-echo: ${key}\r\n`, echoed))
    })
    const outcome = await post(deps, requestTo(port, { body: JSON.stringify({ key }), secrets: [key] }))
    expect(outcome.answer).toContain(`"key":"${'*'.repeat(key.length)}"`)
    expect(outcome.answer).not.toMatch(/hidden-token|R0UT1NGKEY|[^\P{Cc}\n\t]/u)
  })
})

describe('the addresses of a receiver', () => {
  it('are looked up once, and only those that were checked are connected to', async () => {
    const receiver = await start(socket => socket.write(http('200 OK')), { host: '127.0.0.2' })
    const looked: string[] = []
    const lookup = async (host: string) => {
      looked.push(host)
      return [{ address: looked.length === 1 ? '127.0.0.2' : '127.0.0.1', family: 4 }]
    }
    const url = `http://rebinding.example:${receiver.port}/`
    expect(await post({ ...deps, lookup }, requestTo(0, { url }))).toMatchObject({ kind: 'delivered' })
    expect(looked).toEqual(['rebinding.example'])
    expect(receiver.requests[0]).toContain(`Host: rebinding.example:${receiver.port}`)
  })

  it('are tried one after the other', async () => {
    const receiver = await start(socket => socket.write(http('200 OK')), { host: '127.0.0.2' })
    const lookup = async () => ['127.0.0.3', '127.0.0.2'].map(address => ({ address, family: 4 }))
    const url = `http://hooks.example:${receiver.port}/`
    expect(await post({ ...deps, lookup }, requestTo(0, { url }))).toMatchObject({ kind: 'delivered' })
  })

  it('are refused without a connection if one is not allowed', async () => {
    const receiver = await start(socket => socket.write(http('200 OK')))
    const lookup = async () => ['8.8.8.8', '127.0.0.1'].map(address => ({ address, family: 4 }))
    const strict = { ...deps, lookup, allowed: PUBLIC_ONLY }
    for (const host of ['rebinding.example', '127.0.0.1', '2130706433', '[::ffff:127.0.0.1]']) {
      const url = `https://${host}:${receiver.port}/`
      expect(await post(strict, requestTo(0, { url })), host).toMatchObject({ kind: 'refused' })
    }
    expect(receiver.requests).toEqual([])
  })

  it('that a name server never gives end at the deadline', async () => {
    const lookup = () => new Promise<never>(() => {})
    expect(await post({ ...soon, lookup }, requestTo(0, { url: 'https://hooks.example/' }))).toMatchObject({
      ...{ kind: 'failed', reason: 'no answer within 1 s' },
    })
  })
})

describe('TLS', () => {
  it('needs a trusted certificate for the name of the receiver, not for its address', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'penstock-receiver-'))
    const before = getCACertificates('default')
    try {
      const authority = createAuthority(dir)
      const files = authority.issue('hooks.example')
      const tls = { cert: readFileSync(files.certificate, 'utf8'), key: readFileSync(files.key, 'utf8') }
      const { port } = await start(socket => socket.write(http('200 OK')), { tls })
      const lookup = async () => [{ address: '127.0.0.1', family: 4 }]
      const outcomeOf = (host: string) => post({ ...deps, lookup }, requestTo(0, { url: `https://${host}:${port}/` }))
      const reason = 'the certificate of the receiver is not trusted'
      expect(await outcomeOf('hooks.example')).toMatchObject({ kind: 'failed', reason })
      setDefaultCACertificates([...before, authority.pem])
      expect(await outcomeOf('hooks.example')).toMatchObject({ kind: 'delivered' })
      expect(await outcomeOf('other.example')).toMatchObject({ kind: 'failed', reason })
      expect(await outcomeOf('127.0.0.1')).toMatchObject({ kind: 'failed', reason })
    } finally {
      setDefaultCACertificates(before)
      rmSync(dir, { recursive: true })
    }
  })

  it('is not what a receiver of plain HTTP speaks', async () => {
    const server = createServer()
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as AddressInfo
    const outcome = await post(deps, requestTo(0, { url: `https://127.0.0.1:${port}/` }))
    server.close()
    expect(outcome).toMatchObject({ kind: 'failed', reason: 'the receiver does not speak TLS as required' })
  })
})
