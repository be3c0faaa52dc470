import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { MIB } from '../../../../schemas/units.ts'
import { createHttpClient, type Failure, type HttpRequest, retryAfterMs, retryDelayMs } from './http-client.ts'

type Answer = (request: IncomingMessage, response: ServerResponse, body: string) => void

describe('a request of a build', () => {
  let server: Server
  let answers: Answer[]
  let bodies: string[]
  let now: number
  let waits: number[]
  let failures: Failure[]
  let stopping: AbortController

  beforeEach(async () => {
    ;[answers, bodies, now, waits, failures] = [[], [], 0, [], []]
    stopping = new AbortController()
    server = createServer((request, response) => {
      let body = ''
      request.on('data', chunk => (body += chunk))
      request.on('end', () => {
        bodies.push(body)
        const answer = answers.length > 1 ? answers.shift() : answers[0]
        answer?.(request, response, body)
      })
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  })
  afterEach(() => {
    server.closeAllConnections()
    server.close()
  })

  const client = (retryTimeoutMs = 60_000) =>
    createHttpClient(
      {
        fetch,
        now: () => now,
        random: () => 0,
        async delay(ms) {
          waits.push(ms)
          now += ms
        },
        abortSignal: stopping.signal,
        onRetry: (_what, failure) => failures.push(failure),
      },
      { retryTimeoutMs },
    )

  const request = (change: Partial<HttpRequest> = {}): HttpRequest => ({
    what: 'trying',
    method: 'PUT',
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/x?secret=signature`,
    headers: { 'content-type': 'text/plain' },
    body: () => ({ content: 'hello' }),
    deadlineMs: 5_000,
    ...change,
  })
  const say = (status: number, headers: Record<string, string> = {}, text = ''): Answer => {
    return (_request, response) => response.writeHead(status, headers).end(text)
  }

  it('is repeated with its complete body after 408, 429, 5xx and broken connections, until it is answered', async () => {
    const hangUp: Answer = request => request.socket.destroy()
    answers = [say(408), say(429), say(500), say(502), say(503), hangUp, say(201, {}, 'done')]
    expect(await client().send(request())).toEqual({ status: 201, text: 'done' })
    expect(bodies).toEqual(Array.from({ length: 7 }, () => 'hello'))
    expect(waits).toEqual([250, 500, 1_000, 2_000, 4_000, 8_000])
    expect(failures.map(({ kind }) => kind)).toEqual(['status', 'status', 'status', 'status', 'status', 'connection'])
  })

  it('waits for an answer as long as it may be repeated, at least five seconds', async () => {
    answers = [() => {}]
    await expect(client(0).send(request({ deadlineMs: 60_000 }))).rejects.toThrow('no answer within 5 s')
  })

  it('waits as long as Retry-After requests, and gives up at once if that is too long', async () => {
    answers = [say(429, { 'retry-after': '7' }), say(503, { 'retry-after': '2' }), say(200)]
    await client().send(request())
    expect(waits).toEqual([7_000, 2_000])
    answers = [say(503, { 'retry-after': '61' }, '{"code":"INGEST_INFRA_UNAVAILABLE","message":"x"}')]
    const error = 'trying: answered 503 INGEST_INFRA_UNAVAILABLE'
    await expect(client().send(request())).rejects.toThrow(error)
    expect(waits).toHaveLength(2)
  })

  it('is given up at the retry timeout, with a reason that does not contain the URL', async () => {
    answers = [say(500)]
    const error = await client(10_000)
      .send(request())
      .catch(error => error)
    expect(error.message).toBe('trying: answered 500 (6 attempts)')
    expect(now).toBeLessThanOrEqual(10_000)
  })

  it.each([200, 301, 400, 401, 403, 404, 409, 413])(
    'returns %i as the answer and follows no redirect',
    async status => {
      answers = [say(status, { location: '/elsewhere' }, 'x')]
      expect(await client().send(request())).toMatchObject({ status })
      expect(bodies).toHaveLength(1)
    },
  )

  it('is aborted at its deadline and repeated', async () => {
    answers = [() => {}, say(200)]
    expect(await client().send(request({ deadlineMs: 200 }))).toMatchObject({ status: 200 })
    expect(failures).toMatchObject([{ kind: 'deadline' }])
  })

  it('distinguishes a connection that was never established from a broken one', async () => {
    const refused = request({
      url: 'http://127.0.0.1:2/',
      giveUp: ({ kind }, attempt) => kind === 'unreachable' && attempt === 2,
    })
    await expect(client().send(refused)).rejects.toMatchObject({
      failure: { kind: 'unreachable', reason: 'ECONNREFUSED' },
    })
    expect(waits).toHaveLength(1)
    const unknown = request({ url: 'http://nowhere.invalid/' })
    await expect(client().sendOnce(unknown)).rejects.toMatchObject({ failure: { kind: 'unreachable' } })
  })

  it('is aborted with its command', async () => {
    answers = [() => stopping.abort()]
    await expect(client().send(request())).rejects.toThrow(/abort/i)
  })

  it('sends a stream with its length, created for each attempt and closed after it', async () => {
    let [made, closed] = [0, 0]
    async function* content() {
      yield Buffer.from('hel')
      yield Buffer.from('lo')
    }
    const lengths: (string | undefined)[] = []
    const note =
      (answer: Answer): Answer =>
      (request, response, body) => {
        lengths.push(request.headers['content-length'])
        answer(request, response, body)
      }
    answers = [note(say(503)), note(say(200))]
    const body = () => {
      made++
      return { content: content(), close: () => void closed++ }
    }
    await client().send(request({ headers: { 'content-length': '5' }, body }))
    expect({ made, closed, lengths, bodies }).toEqual({
      made: 2,
      closed: 2,
      lengths: ['5', '5'],
      bodies: ['hello', 'hello'],
    })
  })

  it('is not repeated when a file changes while it is being sent', async () => {
    answers = [say(200)]
    async function* content() {
      yield Buffer.from('less')
    }
    const changed = request({ headers: { 'content-length': '5' }, body: () => ({ content: content() }) })
    await expect(client().send(changed)).rejects.toThrow('a file changed or disappeared while it was being sent')
    expect(waits).toEqual([])
  })

  it('stops reading an answer that is too long', async () => {
    answers = [(_request, response) => void response.writeHead(200).end(Buffer.alloc(9 * MIB))]
    await expect(client().send(request())).rejects.toThrow('an answer is longer than')
  })
})

it('waits exponentially longer up to ten seconds, with jitter, and never less than Retry-After requests', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 100 }),
      fc.integer({ min: 0, max: 100_000 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (attempt, askedMs, random) => {
        const waitMs = retryDelayMs(attempt, askedMs, () => random)
        const fullMs = Math.min(250 * 2 ** (attempt - 1), 10_000)
        expect(waitMs).toBeGreaterThanOrEqual(Math.max(askedMs, Math.floor(fullMs / 2)))
        expect(waitMs).toBeLessThanOrEqual(Math.max(askedMs + 1_000, fullMs))
      },
    ),
  )
})

it('reads Retry-After as seconds or as a date, and ignores everything else', () => {
  const now = Date.parse('2026-11-21T10:00:00Z')
  expect(retryAfterMs('7', now)).toBe(7_000)
  expect(retryAfterMs('Sat, 21 Nov 2026 10:00:05 GMT', now)).toBe(5_000)
  expect(retryAfterMs('Sat, 21 Nov 2026 09:00:00 GMT', now)).toBe(0)
  for (const header of [null, '', '-1', '1.5', 'soon', '99999999999999', '2026-11-21'])
    expect(retryAfterMs(header, now)).toBe(0)
})
