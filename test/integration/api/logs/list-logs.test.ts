import { beforeAll, describe, expect, it } from 'vitest'
import { SEVERITIES } from '../../../../schemas/http/logs.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../../schemas/units.ts'
import { ask, between, client, hex, histogram, list, nanos, otherToken, store } from './fixture.ts'

const [trace, otherTrace] = [hex('a1', 16), hex('a2', 16)]
const [span, otherSpan] = [hex('b1', 8), hex('b2', 8)]
const shown = async (query: string, bearer?: string) =>
  (await list(query, bearer)).logs.map(({ severityText }) => severityText).join('')

describe('GET /v3/logs', () => {
  it('finds records by conditions on their attributes', async () => {
    const receivedAtMs = Date.now() - 1_000
    const record = (severityText: string, attributes: Record<string, string>) =>
      ({ receivedAtMs, severityText, attributes, serviceName: 'where' }) as const
    await store([record('a', { status: '500', route: '/cart' }), record('b', { status: '404' }), record('c', {})])
    const by = (where: unknown) =>
      shown(String(new URLSearchParams({ service: 'where', where: JSON.stringify(where) })))
    expect(await by([['status', '>=', '500']])).toBe('a')
    expect([...(await by([['status', '!=', '500']]))].sort().join('')).toBe('bc')
    expect(
      await by([
        ['status', 'exists'],
        ['route', 'absent'],
      ]),
    ).toBe('b')
    expect(await by([['route', 'contains', 'CART']])).toBe('a')
  })

  it('shows everything of a record', async () => {
    const receivedAtMs = Date.now() - 1_000
    const timeUnixNano = nanos(receivedAtMs - 5_000) + 7n
    await store([
      {
        ...{ receivedAtMs, timeUnixNano, serviceName: 'whole', serviceVersion: '1.2', severityNumber: 18 },
        ...{ severityText: 'ERR', body: 'pay ä', traceId: hex('d1', 16), spanId: hex('d2', 8) },
        attributes: { b: 'second', a: 'first', 'session.id': 's' },
      },
      { serviceName: 'whole', receivedAtMs: receivedAtMs - 10_000 },
    ])
    const { logs } = await list('service=whole')
    const isoNanos = `${new Date(receivedAtMs - 5_000).toISOString().slice(0, -1)}000007Z`
    const noScope = { name: '', version: '', attributes: {}, droppedAttributesCount: 0, schemaUrl: '' }
    expect(logs).toEqual([
      {
        timestamp: isoNanos,
        timeUnixNano: String(timeUnixNano),
        observedTimeUnixNano: '0',
        receivedAt: new Date(receivedAtMs).toISOString(),
        surfaceId: 'srf_1',
        serviceName: 'whole',
        serviceVersion: '1.2',
        severity: 'ERROR',
        severityNumber: 18,
        severityText: 'ERR',
        body: 'pay ä',
        bodyType: 'string',
        traceId: hex('d1', 16),
        spanId: hex('d2', 8),
        sessionId: 's',
        flags: 0,
        attributes: [
          { key: 'b', type: 'string', value: 'second' },
          { key: 'a', type: 'string', value: 'first' },
          { key: 'session.id', type: 'string', value: 's' },
        ],
        droppedAttributesCount: 0,
        resource: {
          attributes: { 'service.name': 'whole', 'service.version': '1.2' },
          droppedAttributesCount: 0,
          schemaUrl: '',
        },
        scope: noScope,
      },
      {
        timestamp: expect.stringMatching(/000000Z$/),
        timeUnixNano: '0',
        observedTimeUnixNano: '0',
        receivedAt: new Date(receivedAtMs - 10_000).toISOString(),
        surfaceId: 'srf_1',
        serviceName: 'whole',
        serviceVersion: '',
        severity: 'UNSPECIFIED',
        severityNumber: 0,
        severityText: '',
        body: '',
        bodyType: 'empty',
        flags: 0,
        attributes: [],
        droppedAttributesCount: 0,
        resource: { attributes: { 'service.name': 'whole' }, droppedAttributesCount: 0, schemaUrl: '' },
        scope: noScope,
      },
    ])
  })

  it('has records whose clock is ahead at their arrival, in the default time', async () => {
    const receivedAtMs = Date.now() - MINUTE_MS
    const ahead = [nanos(Date.UTC(2300, 0)), 2n ** 64n - 1n, nanos(receivedAtMs + 10 * MINUTE_MS)]
    await store([
      ...ahead.map(timeUnixNano => ({ receivedAtMs, timeUnixNano, serviceName: 'ahead' })),
      { receivedAtMs, timeUnixNano: nanos(receivedAtMs + 4 * MINUTE_MS), serviceName: 'ahead' },
    ])
    const { logs } = await list('service=ahead')
    const arrival = `${new Date(receivedAtMs).toISOString().slice(0, -1)}000000Z`
    expect(logs.map(({ timestamp }) => timestamp).slice(1)).toEqual([arrival, arrival, arrival])
    expect(new Set(logs.map(log => log.timeUnixNano))).toEqual(
      new Set([...ahead, nanos(receivedAtMs + 4 * MINUTE_MS)].map(String)),
    )
    expect((await histogram('service=ahead')).total).toBe(4)
  })

  describe('finds', () => {
    const base = Math.floor(Date.now() / 1_000) * 1_000 - 3 * HOUR_MS
    const at = (seconds: number) => nanos(base + seconds * 1_000)
    const short = hex('c', 16)
    const records = [
      {
        ...{
          severityText: 'a',
          timeUnixNano: at(1),
          serviceName: 'web',
          severityNumber: 9,
          traceId: trace,
          spanId: span,
        },
        ...{ body: 'Payment of order 17: declined', attributes: { 'order.id': '17', 'session.id': 's-1' } },
      },
      {
        ...{ severityText: 'b', timeUnixNano: at(2), serviceName: 'web', severityNumber: 17, traceId: trace },
        ...{ spanId: otherSpan, body: 'connection_timeout to db-7', attributes: { 'order.id': '17', note: 'a=b' } },
      },
      {
        ...{ severityText: 'c', timeUnixNano: at(3), serviceName: '', body: 'ÄRGER über PAYMENT' },
        traceId: `${hex('0', 16)}${short}`,
      },
      { severityText: 'd', timeUnixNano: at(4), serviceName: "o'neil", severityNumber: 5, body: 'payments, order' },
    ]
    const all = between(base, base + MINUTE_MS)

    beforeAll(() =>
      store([...records, ...records.map(record => ({ ...record, workspaceId: 'ws_2', severityText: 'x' }))]),
    )

    it.each([
      ['everything', '', 'dcba'],
      ['a trace', `trace=${trace}`, 'ba'],
      ['a trace with an id of 64 bits', `trace=${short}`, 'c'],
      ['a trace that has none', `trace=${otherTrace}`, ''],
      ['a span', `span=${span}`, 'a'],
      ['a session', 'session=s-1', 'a'],
      ['a session that has none', 'session=s-2', ''],
      ['a service', 'service=web', 'ba'],
      ['no service', 'service=', 'c'],
      ['a service with a quote', `service=${encodeURIComponent("o'neil")}`, 'd'],
      ['any severity', 'severity=TRACE', 'dba'],
      ['a severity and higher ones', 'severity=INFO', 'ba'],
      ['errors', 'severity=ERROR', 'b'],
      ['a severity that none has', 'severity=FATAL', ''],
      ['a word in either case, and not as a part of another', 'q=payment', 'ca'],
      ['all of several words', 'q=ORDER+Payment', 'a'],
      ['a word beside an underscore', 'q=timeout', 'b'],
      ['a word with a separator, as two words', 'q=db-7', 'b'],
      ['a word outside of ASCII, in its case', `q=${encodeURIComponent('Ärger')}`, 'c'],
      ['no word outside of ASCII in another case', `q=${encodeURIComponent('ärger')}`, ''],
      ['an attribute', 'attribute=order.id%3D17', 'ba'],
      ['an attribute with "=" in its value', 'attribute=note%3Da%3Db', 'b'],
      ['a value as a whole', 'attribute=order.id%3D1', ''],
      ['no attribute that is absent', 'attribute=order.id%3D', ''],
      ['what meets all conditions', 'service=web&severity=ERROR&q=timeout&attribute=note%3Da%3Db', 'b'],
    ])('%s', async (_, query, expected) => {
      expect(await shown(`${all}&${query}`)).toBe(expected)
      expect(await shown(`${all}&${query}`, otherToken)).toBe('x'.repeat(expected.length))
      const { logs } = await list(`${all}&${query}`)
      const { counts, total } = await histogram(`${all}&${query}`)
      expect(total).toBe(logs.length)
      const sums = SEVERITIES.map(severity => counts[severity].reduce((sum, count) => sum + count))
      expect(sums).toEqual(SEVERITIES.map(severity => logs.filter(log => log.severity === severity).length))
    })

    it('records from the start of a time on, and before its end', async () => {
      expect(await shown(between(base + 3_000, base + 4_000))).toBe('c')
      expect(await shown(between(base + 3_001, base + 4_001))).toBe('d')
      expect(await shown(`trace=${trace}&${between(base + 1_000, base + 2_000)}`)).toBe('a')
    })
  })

  it('searches the last hour if no time is given, with five minutes for clocks that are ahead', async () => {
    const now = Date.now()
    const ages = { a: 2 * HOUR_MS, b: 30 * MINUTE_MS, c: -3 * MINUTE_MS, d: -10 * MINUTE_MS }
    const logs = Object.entries(ages).map(([severityText, age]) => ({ severityText, timeUnixNano: nanos(now - age) }))
    await store(logs.map(log => ({ ...log, serviceName: 'clock' })))
    const page = await list('service=clock')
    // The last one is over five minutes ahead, so its arrival counts.
    expect(page.logs.map(({ severityText }) => severityText)).toEqual(['c', 'd', 'b'])
    expect(Date.parse(page.from ?? '') - now + HOUR_MS).toBeLessThan(MINUTE_MS)
    expect(Date.parse(page.to ?? '') - Date.parse(page.from ?? '')).toBe(HOUR_MS + 5 * MINUTE_MS)
    const { from, to, total } = await histogram('service=clock')
    expect({ hours: (Date.parse(to) - Date.parse(from) - 5 * MINUTE_MS) / HOUR_MS, total }).toEqual({
      hours: 1,
      total: 3,
    })
    const untilThen = `to=${encodeURIComponent(new Date(now - HOUR_MS).toISOString())}`
    expect(await shown(`service=clock&${untilThen}`)).toBe('a')
    expect(await shown(`service=clock&from=${new Date(now - 3 * HOUR_MS).toISOString()}`)).toBe('cdba')
  })

  it('finds the records of a trace whenever they were, unless a time is given', async () => {
    const now = Date.now()
    const traceId = hex('c3', 16)
    const days = { a: 400, b: 40, c: 0 }
    const logs = Object.entries(days).map(([severityText, day]) => ({
      ...{ severityText, traceId, serviceName: severityText, timeUnixNano: nanos(now - day * DAY_MS) },
    }))
    await store(logs)
    const page = await list(`trace=${traceId}`)
    expect(page).toMatchObject({ logs: [{ severityText: 'c' }, { severityText: 'b' }, { severityText: 'a' }] })
    expect([page.from, page.to]).toEqual([undefined, undefined])
    expect(await shown(`trace=${traceId}&${between(now - 500 * DAY_MS, now - DAY_MS)}`)).toBe('ba')
    expect(await shown(`trace=${traceId}&from=${new Date(now - 60 * DAY_MS).toISOString()}`)).toBe('cb')
    const { from, to, total, counts } = await histogram(`trace=${traceId}`)
    expect(total).toBe(3)
    expect([Date.parse(from), Date.parse(to)]).toEqual([now - 400 * DAY_MS, now + 1])
    expect(counts.UNSPECIFIED.reduce((sum, count) => sum + count)).toBe(3)
    expect((await histogram(`trace=${hex('c4', 16)}`)).total).toBe(0)
  })

  describe('of many records', () => {
    const [rows, stepMs] = [100_000, 6]
    const start = Math.floor(Date.now() / DAY_MS) * DAY_MS - 10 * DAY_MS
    const all = between(start, start + rows * stepMs)

    beforeAll(() =>
      client.command({
        query: `
          INSERT INTO logs (workspace_id, service_name, received_at, timestamp, severity_number, body)
          SELECT 'ws_1', 'crowded', now64(3), fromUnixTimestamp64Milli(toInt64(${start} + number * ${stepMs})), 9,
            if(number = 54321, 'a needle', concat('straw ', toString(number)))
          FROM numbers(${rows})`,
        clickhouse_settings: { async_insert: 0, wait_end_of_query: 1, min_insert_block_size_rows: '200000' },
      }),
    )

    it('reads no more than a page needs', async () => {
      const page = await list(`${all}&limit=5`)
      expect(page.logs.map(({ body }) => body)).toEqual([1, 2, 3, 4, 5].map(i => `straw ${rows - i}`))
      const next = await list(`${all}&limit=2&service=crowded`)
      expect(next.logs).toHaveLength(2)
    })

    it.each(['q=needle', 'session=none', 'attribute=order.id%3D17', `trace=${hex('c5', 16)}`])(
      'reads only where an index has %s',
      async query => {
        expect((await list(`${all}&${query}`)).logs).toHaveLength(query === 'q=needle' ? 1 : 0)
        expect((await histogram(`${all}&${query}`)).total).toBe(query === 'q=needle' ? 1 : 0)
      },
    )

    it.each(['?', '?q=straw&', '?severity=FATAL&', '/histogram?', '/histogram?q=straw&'])(
      'refuses %s if it would read too much, and states how to narrow it',
      async path => {
        const answer = await ask(`${path}${all}${path === '?' ? '&severity=ERROR' : ''}`)
        expect(answer).toEqual({
          status: 400,
          body: {
            code: 'REQUEST_INVALID',
            message:
              'the search would read more than 40000 records or 4 GiB: choose a shorter time by "from" and "to", or name a "service" or a "trace"',
            service: 'api-analytics',
          },
        })
      },
    )

    it('counts them in a shorter time', async () => {
      const { total, counts } = await histogram(`${between(start, start + 10_000 * stepMs)}&q=straw&step=6`)
      expect(total).toBe(10_000)
      expect(counts.INFO).toEqual(Array(10).fill(1_000))
    })
  })

  it.each([
    ['trace=x', 'trace must have 32 hex digits in lower case'],
    [`trace=${hex('0', 32)}`, 'trace must not consist of zeros'],
    ['span=1', 'span must have 16 hex digits in lower case'],
    ['session=', 'session must not be empty'],
    ['severity=error', 'severity must be one of TRACE, DEBUG, INFO, WARN, ERROR, FATAL'],
    ['q=', 'q must have a word, which consists of letters, digits or characters outside of ASCII'],
    ['q=a+b+c+d+e+f+g+h+i', 'q must have at most 8 words'],
    ['attribute=x', 'attribute must be a key and a value with "=" between them'],
    ['attribute=%3Dx', 'attribute must be a key and a value with "=" between them'],
    ['from=yesterday', 'from must be an RFC 3339 time, such as 2026-11-21T10:00:00Z'],
    [between(2_000, 1_000), 'from must be before "to"'],
    ['from=2200-01-01T00:00:00Z', 'from must be before "to", which is five minutes from now if absent'],
    [between(0, 32 * DAY_MS), 'from must be at most 31 days before "to", unless the search names a "trace"'],
    ['from=1970-01-01T00:00:00Z', 'from must be at most 31 days before "to", unless the search names a "trace"'],
  ])('refuses %s', async (query, message) => {
    for (const path of ['?', '/histogram?']) {
      expect(await ask(`${path}${query}`)).toEqual({
        status: 400,
        body: { code: 'REQUEST_INVALID', message, service: 'api-analytics' },
      })
    }
  })
})
