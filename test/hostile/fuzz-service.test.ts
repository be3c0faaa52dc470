import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type OpenApiJson, readDescription } from '../support/clients/described-service.ts'
import { exampleRequest } from '../support/clients/example-request.ts'
import {
  bombs,
  compressed,
  exportCorpus,
  mutated,
  mutatedJson,
  REPLAY_CHUNKS,
  SOURCE_MAPS,
} from '../support/hostile/fuzz-inputs.ts'
import { FuzzRun, growth, MOST_GROWTH, pick, TREND_SAMPLES } from '../support/hostile/fuzz-run.ts'
import { expectAlive, type SmallService, startSmallService } from '../support/hostile/small-service.ts'
import { mutatePayload } from '../support/payloads/mutate-payload.ts'
import type { Random } from '../support/payloads/scramble-message.ts'

const SIGNALS = ['traces', 'logs', 'metrics'] as const
const CONNECTIONS = 24
const SOCKETS = 8
/** A request that has no response after this time hangs. */
const HANG_MS = 60_000
/** Status that no client may cause. 503 is another matter: it states that something is unavailable. */
const INTERNAL = 500
const MOST_FAULTS = 10
/** Requests until the code of the processes is compiled. */
const WARM_UP = 2_000
const ERROR_LEVEL = 50
const PROCESSES = ['edge', 'workers', 'api'] as const

let service: SmallService
const lines: string[] = []
beforeAll(async () => {
  service = await startSmallService({ log: line => lines.push(line) })
})
afterAll(() => service?.stop())

interface Sent {
  readonly kind: string
  readonly url: string
  readonly init: RequestInit
}

it('no request crashes, hangs or swells a process, or is answered with an internal error', async () => {
  const samples: Record<string, number[]> = Object.fromEntries(PROCESSES.map(name => [name, []]))
  const run = new FuzzRun(
    { ofTime: 0.7, ofCount: 0.1 },
    () => {
      for (const name of PROCESSES) samples[name]?.push(rssBytes(service.stack[name].pid))
      return 0
    },
    WARM_UP,
  )
  const faults: string[] = []
  const statuses: Record<string, number> = {}
  const make = await requestMaker(run)
  let isOver = false

  async function sendRequests(): Promise<void> {
    while (!isOver) {
      const { kind, url, init } = make()
      const at = run.done
      const outcome = await fetch(url, { ...init, signal: AbortSignal.timeout(HANG_MS) }).then(
        async response => {
          const text = await response.text().catch(() => '')
          if (response.status === INTERNAL) faults.push(`${kind}, seed ${run.seed}, input ${at}: 500 ${text}`)
          return String(response.status)
        },
        (error: Error) => {
          const code = (error.cause as NodeJS.ErrnoException | undefined)?.code ?? error.name
          if (error.name === 'TimeoutError') faults.push(`${kind}, seed ${run.seed}, input ${at}: no response`)
          return code
        },
      )
      statuses[outcome] = (statuses[outcome] ?? 0) + 1
      isOver ||= !run.next(kind) || faults.length >= MOST_FAULTS
    }
  }

  async function sendBytes(): Promise<void> {
    while (!isOver) {
      await speak(service.attacker.edgePort, rawBytes(service.attacker.tenant.publicKey, run.random))
      isOver ||= !run.next('bytes')
    }
  }

  const report = await service.during(async () => {
    // The processes keep some of the memory that the largest inputs need once; only growth beyond that is a leak.
    for (const { otlpSignal, encoding, body } of [...bombs(), ...bombs()]) {
      const headers = { 'content-type': 'application/x-protobuf', 'content-encoding': encoding }
      await service.attacker.post(`/drain/v1/${otlpSignal}`, body, headers)
    }
    await Promise.all([
      ...Array.from({ length: CONNECTIONS }, sendRequests),
      ...Array.from({ length: SOCKETS }, sendBytes),
    ])
  })
  const factors = Object.fromEntries(PROCESSES.map(name => [name, growth(samples[name] ?? [])]))
  console.log(
    `seed ${run.seed}: ${run.done} inputs through the edge and the API, memory × ${JSON.stringify(factors)}, ` +
      `statuses ${JSON.stringify(statuses)}: ${JSON.stringify(run.counts)}`,
  )
  expect(faults).toEqual([])
  expect(lines.filter(isErrorLine)).toEqual([])
  expectAlive(report)
  const trends = Object.entries(factors).filter(([name]) => (samples[name]?.length ?? 0) >= TREND_SAMPLES)
  for (const [name, factor] of trends) expect(factor, name).toBeLessThanOrEqual(MOST_GROWTH)
}, 4_000_000)

/** Returns a function that makes the next request, of any operation of the document. */
async function requestMaker(run: FuzzRun): Promise<() => Sent> {
  const { random } = run
  const { attacker } = service
  const { publicKey, secretKey, sessionToken } = attacker.tenant
  const corpus = exportCorpus(run.seed)
  const allBombs = bombs()
  const document = (await (await fetch(`${attacker.edgeUrl}/openapi.json`)).json()) as OpenApiJson
  const described = readDescription(document).operations.filter(({ path }) => !path.startsWith('/drain/'))
  const releaseSlug = await attacker.builds.register(randomBytes(8).toString('hex'))

  const exportRequest = (): Sent => {
    const otlpSignal = pick(SIGNALS, random)
    const isJson = random() < 0.4
    const originals = isJson ? corpus.json : corpus.protobuf
    const { encoding, body } = compressed(mutated(pick(originals[otlpSignal], random), random), random)
    const type = random() < 0.02 ? 'text/html' : isJson ? 'application/json' : 'application/x-protobuf'
    return post(`export of ${otlpSignal}`, `/drain/v1/${otlpSignal}`, body, {
      'content-type': type,
      ...(encoding !== 'identity' && { 'content-encoding': encoding }),
    })
  }
  const bomb = (): Sent => {
    const { otlpSignal, encoding, body } = pick(allBombs, random)
    return post('bomb', `/drain/v1/${otlpSignal}`, body, {
      'content-type': 'application/x-protobuf',
      'content-encoding': encoding,
    })
  }
  const chunk = (): Sent => {
    const body = mutated(pick(REPLAY_CHUNKS, random), random)
    const isGzip = random() < 0.5
    const metadata = mutatedJson(
      '{"windowId":"w","segmentId":0,"firstTs":1790000000000,"lastTs":1790000000001}',
      random,
    )
    return post('replay', `/v3/replay/upload/s${Math.floor(random() * 1e9)}`, isGzip ? gzipSync(body) : body, {
      'x-replay-metadata': Buffer.from(metadata).toString('base64'),
      ...(isGzip && { 'content-encoding': 'gzip' }),
    })
  }
  const part = (): Sent => ({
    kind: 'map',
    url: `${attacker.edgeUrl}/v3/releases/${releaseSlug}/source-maps?path=${Math.floor(random() * 1e9)}.js.map&part=0`,
    init: {
      method: 'PUT',
      body: new Uint8Array(mutated(pick(SOURCE_MAPS, random), random)),
      headers: { authorization: `Bearer ${secretKey}`, 'content-type': 'application/octet-stream' },
    },
  })
  const operation = (): Sent => {
    const chosen = pick(described, random)
    const request = exampleRequest(chosen)
    const path = random() < 0.3 ? request.path : request.path.replace(/rel_[a-z0-9]+/, releaseSlug)
    for (const name of [...request.query.keys()]) {
      if (random() < 0.3)
        request.query.set(name, mutatePayload(Buffer.from(request.query.get(name) || '0'), random).toString('latin1'))
    }
    const headers: Record<string, string> = {
      ...Object.fromEntries(request.headers),
      'x-service-public-key': publicKey,
      authorization: `Bearer ${path.startsWith('/v3/releases') && request.method !== 'GET' ? secretKey : sessionToken}`,
    }
    const body = typeof request.body === 'string' ? mutatedJson(request.body, random) : request.body
    const sentPath =
      random() < 0.1 ? encodeURI(mutatePayload(Buffer.from(path), random).toString('latin1')).replaceAll('#', '') : path
    return {
      kind: `${request.method.toUpperCase()} ${chosen.path}`,
      url: `${random() < 0.5 ? attacker.edgeUrl : attacker.apiUrl}/${sentPath.replace(/^\/+/, '')}?${request.query}`,
      init: {
        method: request.method.toUpperCase(),
        headers,
        ...(body !== undefined && request.method.toUpperCase() !== 'GET' && { body }),
      },
    }
  }
  function post(kind: string, path: string, body: Buffer, headers: Record<string, string>): Sent {
    return {
      kind,
      url: attacker.edgeUrl + path,
      init: { method: 'POST', body: new Uint8Array(body), headers: { 'x-service-public-key': publicKey, ...headers } },
    }
  }
  return () => {
    const kind = random()
    if (kind < 0.6) return exportRequest()
    if (kind < 0.7) return chunk()
    if (kind < 0.72) return part()
    if (kind < 0.7205) return bomb()
    return operation()
  }
}

/** Makes what no HTTP client would send: broken heads, lengths and chunks, several requests at once, any bytes. */
function rawBytes(publicKey: string, random: Random): Buffer[] {
  const head = `POST /drain/v1/logs HTTP/1.1\r\nhost: x\r\nx-service-public-key: ${publicKey}\r\ncontent-type: application/json\r\n`
  const heads = [
    `${head}content-length: 2\r\n\r\n{}`,
    `${head}content-length: 99999999999999999999\r\n\r\n{}`,
    `${head}content-length: -1\r\n\r\n{}`,
    `${head}content-length: 2\r\ncontent-length: 3\r\n\r\n{}`,
    `${head}transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
    `${head}transfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n{}`,
    `${head}transfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n0\r\n\r\n`,
    `${head}expect: 100-continue\r\ncontent-length: 2\r\n\r\n{}`,
    `GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n`.repeat(20),
    `GET /${'a'.repeat(20_000)} HTTP/1.1\r\nhost: x\r\n\r\n`,
    `GET / HTTP/1.1\r\nhost: x\r\n${'a: b\r\n'.repeat(2_000)}\r\n`,
    `OPTIONS /drain/v1/traces HTTP/1.1\r\nhost: x\r\norigin: https://a.test\r\naccess-control-request-method: POST\r\naccess-control-request-headers: ${'x,'.repeat(2_000)}\r\n\r\n`,
  ]
  const text = Buffer.from(pick(heads, random), 'latin1')
  const bytes = random() < 0.6 ? mutatePayload(text, random) : random() < 0.1 ? randomBytes(500) : text
  const cut = Math.floor(random() * bytes.length)
  return random() < 0.5 ? [bytes] : [bytes.subarray(0, cut), bytes.subarray(cut)]
}

/** Sends pieces on a new connection, and ends it after the first answer or a moment. */
function speak(port: number, pieces: readonly Buffer[]): Promise<void> {
  return new Promise(resolve => {
    const socket = connect({ port, host: '127.0.0.1' })
    const end = () => {
      socket.destroy()
      resolve()
    }
    socket.setTimeout(200, end)
    socket.once('data', end)
    socket.once('error', end)
    socket.once('close', end)
    for (const piece of pieces) socket.write(piece)
  })
}

function rssBytes(pid: number): number {
  try {
    return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1_024
  } catch {
    return 0
  }
}

/** Returns true for a log entry of level error or above, and for what a process prints when it ends by an exception. */
function isErrorLine(line: string): boolean {
  const level = /"level":(\d+)/.exec(line)?.[1]
  return level === undefined ? /Uncaught|Unhandled|FATAL|Error:/.test(line) : Number(level) >= ERROR_LEVEL
}
