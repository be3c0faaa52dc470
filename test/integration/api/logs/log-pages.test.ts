import { describe, expect, it } from 'vitest'
import type { LogRecord } from '../../../../schemas/http/logs.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../../schemas/units.ts'
import type { StoredLog } from '../../../support/workspaces/log-rows.ts'
import { ask, between, client, follow, list, nanos, store } from './fixture.ts'

const textsOf = (logs: readonly LogRecord[]) => logs.map(({ severityText }) => severityText)
const start = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS - 20 * MINUTE_MS
const around = between(start - MINUTE_MS, start + MINUTE_MS)

describe('pages of log records', () => {
  it('show each record once, also those of one time, of one arrival, and equal ones', async () => {
    const at = (severityText: string, time: bigint, receivedAtMs: number): StoredLog => ({
      ...{ severityText, receivedAtMs, timeUnixNano: nanos(start) + time, serviceName: 'ties' },
    })
    const logs = [
      at('newest', 1n, start),
      ...Array.from({ length: 15 }, (_, i) => at(`a${i}`, 0n, start)),
      ...Array.from({ length: 9 }, () => at('same', 0n, start)),
      ...Array.from({ length: 10 }, (_, i) => at(`b${i}`, 0n, start + 1)),
      ...Array.from({ length: 5 }, () => at('same', 0n, start + 2)),
      at('oldest', -1n, start),
    ]
    await store(logs.slice(0, 20))
    await store(logs.slice(20))
    for (const limit of [1, 4, 7, 100]) {
      const pages = await follow(`${around}&service=ties&limit=${limit}`)
      expect(pages.slice(0, -1).every(page => page.length === limit)).toBe(true)
      const seen = textsOf(pages.flat())
      expect([...seen].sort()).toEqual(logs.map(({ severityText }) => severityText).sort())
      expect([seen[0], seen.at(-1)]).toEqual(['newest', 'oldest'])
      expect(seen.slice(1, 6)).toEqual(Array(5).fill('same'))
    }
  })

  it('lose nothing when records that were shown are deleted, and show none that arrive before their start', async () => {
    const at = (severityText: string, ms: number) => ({
      ...{ severityText, timeUnixNano: nanos(start + ms), receivedAtMs: start, serviceName: 'deleted' },
    })
    await store([
      ...['z', 'z', 'z', 'z'].map(text => at(text, 9)),
      ...['y', 'x', 'w'].map((text, i) => at(text, 8 - i)),
    ])
    let page = 0
    const pages = await follow(`${around}&service=deleted&limit=2`, async () => {
      if (page++ > 0) return
      await store([at('late', 10)])
      await client.command({
        query: "DELETE FROM logs WHERE service_name = 'deleted' AND severity_text = 'z'",
        clickhouse_settings: { lightweight_deletes_sync: '2', mutations_sync: '2' },
      })
    })
    expect(pages.map(textsOf)).toEqual([['z', 'z'], ['y', 'x'], ['w']])
  })

  it('show records of the last minute and of weeks before alike', async () => {
    const end = Date.now()
    const ages = [30_000, 90_000, 20 * MINUTE_MS, 40 * MINUTE_MS, 10 * HOUR_MS, 2 * DAY_MS, 30 * DAY_MS]
    await store(
      ages.map((age, i) => ({
        ...{ severityText: String(i), serviceName: 'sparse', timeUnixNano: nanos(end - age), body: 'far apart' },
      })),
    )
    for (const query of ['service=sparse', 'q=apart']) {
      for (const limit of [2, 100]) {
        const pages = await follow(`${between(end - 31 * DAY_MS, end)}&${query}&limit=${limit}`)
        expect(textsOf(pages.flat())).toEqual(ages.map((_, i) => String(i)))
        expect(pages).toHaveLength(Math.ceil(ages.length / limit))
      }
    }
  })

  it('have the time of the first page', async () => {
    await store([1, 2, 3].map(n => ({ serviceName: 'fixed', severityText: String(n) })))
    const { from, to, nextCursor } = await list('service=fixed&limit=1')
    const next = await list(`service=fixed&limit=1&cursor=${nextCursor}`)
    expect([next.from, next.to]).toEqual([from, to])
    expect(await ask(`?service=other&limit=1&cursor=${nextCursor}`)).toMatchObject({
      status: 400,
      body: { message: 'cursor is for a list with other filters: start again without it' },
    })
  })

  it('have about 1 MiB, or one record of up to 4 MiB', async () => {
    const sizes = [300_000, 300_000, 300_000, 300_000, 1_500_000, 3_000_000, 10, 300_000, 300_000, 300_000]
    await store(
      sizes.map((size, i) => ({
        ...{ severityText: String(i), serviceName: 'large', timeUnixNano: nanos(start - i), body: 'x'.repeat(size) },
      })),
    )
    const pages = await follow(`${around}&service=large`)
    expect(pages.map(textsOf)).toEqual([['0', '1', '2'], ['3'], ['4'], ['5'], ['6', '7', '8', '9']])
    expect(pages.flat().map(({ body }) => body.length)).toEqual(sizes)
    expect(pages.flat().some(({ isCut }) => isCut)).toBe(false)
  })

  it('show a larger record in part', async () => {
    const attributes = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`key ${i}`, 'ä'.repeat(2_000)]))
    const huge = { body: 'ä'.repeat(2_500_000), attributes, traceId: 'e1'.repeat(16) }
    await store(
      [{ body: 'before' }, huge, { body: 'after' }].map((log, i) => ({
        ...{ ...log, serviceName: 'huge', timeUnixNano: nanos(start - i) },
      })),
    )
    const pages = await follow(`${around}&service=huge`)
    expect(pages.map(page => page.length)).toEqual([1, 1, 1])
    const [, [cut] = []] = pages
    expect(cut).toMatchObject({ isCut: true, body: 'ä'.repeat(65_536), traceId: huge.traceId })
    expect(cut?.attributes).toHaveLength(64)
    expect(cut?.attributes[63]).toEqual({ key: 'key 63', type: 'string', value: 'ä'.repeat(1_024) })
    expect(cut?.resource.attributes).toEqual({ 'service.name': 'huge' })
    expect(pages.flat().filter(({ isCut }) => isCut)).toHaveLength(1)
    expect((await list(`trace=${huge.traceId}`)).logs).toHaveLength(1)
  })
})
