import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { MIB } from '../../schemas/units.ts'
import { type Attacker, GZIPPED, keepAttacking } from '../support/hostile/attacker.ts'
import { field, spanWith } from '../support/hostile/bodies.ts'
import { ContainerWatch } from '../support/hostile/container.ts'
import { MachineShare } from '../support/hostile/machine-share.ts'
import { type SmallService, startSmallService } from '../support/hostile/small-service.ts'
import { until } from '../support/until.ts'

const SERIES = 5_000
const SPANS = 4_800
const ATTRIBUTES = 100
const TRACE_ID = randomBytes(16)
const TRACE = TRACE_ID.toString('hex')
/** Longest wait of another workspace on a machine that does nothing else, unless it waits half as long without an attack. */
const LONGEST_WAIT_MS = 200
const CALM_PROBES = 100

/** Memory of the container of the API, as the chart limits it. */
const API_MIB = 384

let service: SmallService
let watch: ContainerWatch
beforeAll(async () => {
  service = await startSmallService()
  const { attacker } = service
  expect(await attacker.post('/drain/v1/metrics', gzipSync(manySeries()), GZIPPED)).toBe(200)
  expect(await attacker.post('/drain/v1/traces', gzipSync(wideTrace()), GZIPPED)).toBe(200)
  const exception = { type: 'Error', message: 'e' }
  expect(await attacker.post('/drain/v1/traces', gzipSync(spanWith({ exception })), GZIPPED)).toBe(200)
  await until('everything is stored', async () => {
    const counts = await Promise.all([
      countOf("metric_points WHERE metric_name = 'y'"),
      countOf(`spans WHERE trace_id = unhex('${TRACE}')`),
      countOf("findings WHERE latest.type = 'Error'"),
    ])
    return counts[0] === SERIES && counts[1] === SPANS && (counts[2] ?? 0) > 0
  })
  watch = new ContainerWatch([{ name: 'api', pid: service.stack.api.pid, limitBytes: API_MIB * MIB }])
})
afterAll(() => {
  watch?.stop()
  return service?.stop()
})

const nested = (functions: number) => `${'abs('.repeat(functions)}y${')'.repeat(functions)}`
const joined = (leaves: number, functions: number) =>
  `count(${Array.from({ length: leaves }, () => nested(functions)).join(' or ')})`
const promql = (query: string) => (attacker: Attacker) =>
  attacker.request(`${attacker.apiUrl}/prometheus/api/v1/query`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${attacker.tenant.sessionToken}`,
      'content-type': 'application/x-www-form-urlencoded',
    },
    body: new URLSearchParams({ query }),
  })
const get = (path: string) => (attacker: Attacker) => attacker.call('GET', path)
const withProtobuf = (path: string) => (attacker: Attacker) =>
  attacker.request(attacker.apiUrl + path, {
    headers: { authorization: `Bearer ${attacker.tenant.sessionToken}`, accept: 'application/protobuf' },
  })
const tool = (name: string, args: object) => (attacker: Attacker) =>
  attacker.request(`${attacker.apiUrl}/mcp`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${attacker.tenant.sessionToken}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }),
  })
const range = () => {
  const end = Math.floor(Date.now() / 1_000)
  return `&start=${end - 3_000}&end=${end}&step=4`
}

/** Sequences of reads of one workspace, and the statuses that they may have. */
const SEQUENCES: Readonly<Record<string, (attacker: Attacker) => Promise<number | string>>> = {
  'PromQL that compares the labels of 5,000 series 400 times': promql(joined(9, 45)),
  'PromQL of 9 leaves with 12 functions each': promql(joined(9, 12)),
  'PromQL of 5,000 series over 750 steps': attacker =>
    attacker.call('GET', `/prometheus/api/v1/query_range?query=${encodeURIComponent('sum by (k0) (y) / y')}${range()}`),
  'invalid PromQL of 8 kB of parentheses': promql('('.repeat(8_000)),
  'invalid PromQL of 8 kB of braces': promql('{'.repeat(8_000)),
  'invalid PromQL of 8 kB of emoji': promql('🦀'.repeat(1_000)),
  'the JSON of Tempo of a wide trace': get(`/tempo/api/traces/${TRACE}`),
  'the protobuf of Tempo of a wide trace': withProtobuf(`/tempo/api/v2/traces/${TRACE}`),
  'the JSON of Jaeger of a wide trace': get(`/jaeger/api/traces/${TRACE}`),
  'TraceQL of 6 kB': get(`/tempo/api/search?q=${encodeURIComponent(`{${' .a = "b" &&'.repeat(500)} .a = "b"}`)}`),
  'all spans of a wide trace and its outline by a tool': tool('outline_trace', { traceId: TRACE }),
  'searches of findings by a text': get('/v3/findings?q=e&occurrences=true&limit=100'),
}

it.each(Object.entries(SEQUENCES))('%s let another workspace wait no longer', async (name, send) => {
  const { attacker, others } = service
  const probe = async () => {
    const startedAt = performance.now()
    expect(await others[1].call('GET', '/v3/retention')).toBe(200)
    return performance.now() - startedAt
  }
  const calm: number[] = []
  for (let i = 0; i < CALM_PROBES; i++) calm.push(await probe())
  const share = new MachineShare()
  const waits: number[] = []
  const statuses = new Set<number | string>()
  let isOver = false
  const attack = keepAttacking(3, async () => {
    statuses.add(await send(attacker))
  }).finally(() => {
    isOver = true
  })
  while (!isOver) {
    waits.push(await probe())
    await delay(10)
  }
  await attack
  const limit = Math.max(2 * p99(calm), LONGEST_WAIT_MS) / share.left()
  console.log(
    `${name}: calm ${p99(calm).toFixed(1)} ms, p99 ${p99(waits).toFixed(1)} ms of ${waits.length}, ${[...statuses]}`,
  )
  expect([...statuses].filter(status => ![200, 400, 422, 429, 503].includes(Number(status)))).toEqual([])
  expect(p99(waits)).toBeLessThanOrEqual(limit)
  const [{ peakMib, ended } = { peakMib: 0, ended: 'it is not watched' }] = watch.reports()
  console.log(`api ${peakMib} MiB`)
  expect(ended).toBeUndefined()
})

function p99(times: readonly number[]): number {
  return times.toSorted((a, b) => a - b)[Math.ceil(0.99 * times.length) - 1] as number
}

async function countOf(from: string): Promise<number> {
  const result = await service.clickhouse.query({
    query: `SELECT toUInt32(count()) AS n FROM ${from}`,
    format: 'JSONEachRow',
  })
  return (await result.json<{ n: number }>())[0]?.n ?? 0
}

function attributeOf(number: number, key: string, value: string): Buffer {
  return field(number, field(1, Buffer.from(key)), field(2, field(1, Buffer.from(value))))
}

/** Encodes a fixed64 field. */
function fixed64(number: number, value: bigint): Buffer {
  const bytes = Buffer.alloc(9)
  bytes[0] = (number << 3) | 1
  bytes.writeBigUInt64LE(value, 1)
  return bytes
}

const nowNano = () => BigInt(Date.now()) * 1_000_000n

/** Points of a gauge, each of a series with a kilobyte of labels. */
function manySeries(): Buffer {
  const time = fixed64(3, nowNano())
  const value = fixed64(4, 0x3ff0_0000_0000_0000n)
  const shared = Array.from({ length: 10 }, (_, i) => attributeOf(7, `k${i}`, `${i}`.repeat(90)))
  const points = Array.from({ length: SERIES }, (_, i) =>
    field(1, time, value, ...shared, attributeOf(7, 'series', String(i).padStart(90, '0'))),
  )
  return field(1, field(2, field(2, field(1, Buffer.from('y')), field(5, ...points))))
}

/** Small spans of one trace, each with a hundred attributes. */
function wideTrace(): Buffer {
  const times = [fixed64(7, nowNano()), fixed64(8, nowNano())]
  const attributes = Array.from({ length: ATTRIBUTES }, (_, i) => attributeOf(9, `key.${i}`, `v${i}`))
  const spans = Array.from({ length: SPANS }, () =>
    field(2, field(1, TRACE_ID), field(2, randomBytes(8)), field(5, Buffer.from('GET /')), ...times, ...attributes),
  )
  return field(1, field(2, ...spans))
}
