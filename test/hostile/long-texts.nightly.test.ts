import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { MIB } from '../../schemas/units.ts'
import { GZIPPED, sendAll } from '../support/hostile/attacker.ts'
import { type SpanTexts, spanWith } from '../support/hostile/bodies.ts'
import { expectUnharmed, type SmallService, startSmallService } from '../support/hostile/small-service.ts'
import { casesOf } from '../support/length.ts'

const TEXT_BYTES = 30 * MIB
const REQUESTS = 6

let service: SmallService
beforeAll(async () => {
  service = await startSmallService()
})
afterAll(() => service?.stop())

const exception = { type: 'E', message: 'x' }

/** Spans whose texts of 30 MiB would be in keys, in states that every merge reads, or in answers of the API. */
const SPANS: Readonly<Record<string, (text: string) => SpanTexts>> = {
  'versions of a service': version => ({ version, exception }),
  'names of a service': service => ({ service }),
  'session ids': sessionId => ({ sessionId, exception }),
  'span names': name => ({ name, exception }),
  'exception types': type => ({ exception: { type, message: 'x' } }),
  'exception messages': message => ({ exception: { type: 'M', message } }),
}

it.each(casesOf(SPANS))('%s of 30 MiB harm no merge and no read', async (_, textsOf) => {
  expectUnharmed(
    await service.during(() =>
      sendAll(REQUESTS, 2, i => {
        const text = String.fromCharCode(97 + i).repeat(TEXT_BYTES)
        return service.attacker.post('/drain/v1/traces', gzipSync(spanWith(textsOf(text)), { level: 1 }), GZIPPED)
      }),
    ),
  )
})

it('leaves findings and their lists small', async () => {
  const list = await fetch(`${service.attacker.apiUrl}/v3/findings`, {
    headers: { authorization: `Bearer ${service.attacker.tenant.sessionToken}` },
  })
  expect(list.status).toBe(200)
  expect((await list.text()).length).toBeLessThan(200_000)
  const result = await service.clickhouse.query({
    query: 'SELECT toUInt32(max(length(service_version))) AS version FROM findings',
    format: 'JSONEachRow',
  })
  const [row] = await result.json<{ version: number }>()
  expect(row?.version).toBeLessThanOrEqual(256)
})
