import { describe, expect, it } from 'vitest'
import { tracesPageSchema } from '../../../../schemas/http/traces/search.ts'
import { ago, newWorkspace } from './list-fixture.ts'

type Condition = readonly [key: string, operator: string, value?: string]

/** Rows by name. Each is a trace of one span. */
const ROWS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  none: {},
  fast: { route: '/cart', status: '200', ms: '9' },
  slow: { route: '/cart', status: '500', ms: '10', user: 'Ädä' },
  other: { route: '/cart/items', status: '404', ms: '1e3', user: '' },
  words: { route: 'x', status: 'refused', ms: ' 7 ' },
  bytes: { route: 'a\0b\x01c', status: '500.0', 'ro\0ute': '/cart' },
  pattern: { '.*': '/cart', 'route+': '/cart' },
}

const COMPARED: Readonly<Record<string, (value: number, other: number) => boolean>> = {
  '>': (value, other) => value > other,
  '>=': (value, other) => value >= other,
  '<': (value, other) => value < other,
  '<=': (value, other) => value <= other,
}

function meets(attributes: Readonly<Record<string, string>>, [key, operator, value = '']: Condition): boolean {
  const actual = attributes[key]
  if (operator === 'exists') return actual !== undefined
  if (operator === 'absent') return actual === undefined
  if (operator === '=') return actual === value
  if (operator === '!=') return actual !== value
  if (operator === 'contains') return actual?.toLowerCase().includes(value.toLowerCase()) ?? false
  // ClickHouse reads a number with nothing around it.
  return /^[\d.e+-]+$/.test(actual ?? '') && (COMPARED[operator]?.(Number(actual), Number(value)) ?? false)
}

describe('GET /v3/traces?where=', () => {
  it('finds the spans whose attributes meet all conditions', async () => {
    const { store, list } = await newWorkspace()
    const nameOf = new Map<string, string>()
    for (const [name, attributes] of Object.entries(ROWS)) {
      nameOf.set(await store([{ ...ago(60_000), attributes }]), name)
    }
    const keys = ['route', 'status', 'ms', 'user', 'ro\0ute', '.*', 'route+', 'rout']
    const texts = ['/cart', '500', '', 'Ädä', 'a\0b\x01c', '\0', '/CART', 'ädä', 'b\x01']
    const conditions: Condition[] = keys.flatMap(key => [
      ...['exists', 'absent'].map(operator => [key, operator] as const),
      ...texts.flatMap(text => ['=', '!=', 'contains'].map(operator => [key, operator, text] as const)),
      ...['10', '499.5', '-1', '1e3'].flatMap(text =>
        Object.keys(COMPARED).map(operator => [key, operator, text] as const),
      ),
    ])
    const valid = conditions.filter(([, operator, value]) => operator !== 'contains' || value !== '')
    // Each condition by itself, and with the next one.
    for (const [i, condition] of valid.entries()) {
      const next = valid[(i + 17) % valid.length] ?? condition
      for (const where of [[condition], [condition, next]]) {
        const { traces } = await list({ where: JSON.stringify(where), limit: '100' })
        const found = traces.map(({ traceId }) => nameOf.get(traceId)).sort()
        const expected = Object.keys(ROWS).filter(name => where.every(one => meets(ROWS[name] ?? {}, one)))
        expect(found, JSON.stringify(where)).toEqual(expected.sort())
      }
    }
  })

  it('is met together with `attribute` by one span, and on every page', async () => {
    const { store, list } = await newWorkspace()
    const [apart] = [
      await store([
        { ...ago(9_000), attributes: { a: '1' } },
        { ...ago(9_000), attributes: { b: '2' } },
      ]),
    ]
    const together: string[] = []
    for (let i = 0; i < 3; i++) together.unshift(await store([{ ...ago(8_000 - i), attributes: { a: '1', b: '2' } }]))
    const query = { attribute: 'a=1', where: '[["b",">","1"]]', limit: '2' }
    const first = await list(query)
    const second = await list({ ...query, cursor: first.nextCursor ?? '' })
    const ids = [...first.traces, ...second.traces].map(({ traceId }) => traceId)
    expect(ids).toEqual(together)
    expect(ids).not.toContain(apart)
  })

  it.each([
    'x',
    '{}',
    '[]',
    '[[]]',
    '[["a"]]',
    '[["","exists"]]',
    '[["a","exists","b"]]',
    '[["a","=~","b"]]',
    '[["a","contains",""]]',
    '[["a",">","b"]]',
    '[["a",">",""]]',
    `[${Array(9).fill('["a","exists"]')}]`,
  ])('refuses %s', async where => {
    const { ask } = await newWorkspace()
    const { status, body } = await ask({ where })
    expect(status).toBe(400)
    expect(body).toMatchObject({ message: expect.stringMatching(/^where must be a JSON list of at most 8 conditions/) })
    expect(tracesPageSchema.safeParse(body).success).toBe(false)
  })
})
