import { describe, expect, it } from 'vitest'
import { type FindingMove, rankOf, revisionOf } from '../../clickhouse/tables/finding-moves-table.ts'
import { findingFrameSchema, type StoredFrame } from '../../schemas/http/findings/schemas.ts'
import type { ManifestFile } from '../../schemas/records/manifest.ts'
import { identify } from '../../shared/grouping/fingerprint.ts'
import { compileRules, findingOfRule, NO_RULES } from '../../shared/grouping/rules.ts'
import { releaseSlugOf } from '../../shared/ids/release-slug.ts'
import { createChunkMatcher } from './match-chunk.ts'
import { type SymbolicateStacksDeps, symbolicateStacks } from './symbolicate-stacks.ts'
import type { OriginalPosition, Position } from './tracing/parsed-map.ts'

const storedFrameSchema = findingFrameSchema.omit({ inApp: true, sourceUrl: true })
const OWNER = { workspaceId: 'ws_1', surfaceId: 'srf_1' }
const SLUG = releaseSlugOf({ ...OWNER, name: '1.0' })
const FILE: ManifestFile = {
  ...{ path: 'x.js.map', hash: '', debugId: '', chunkUrl: '~/x.js', sha256: 'a'.repeat(64), size: 1, verified: true },
}

/** A release with one script, whose map knows these lines of it. */
function createDeps(known: Record<number, Partial<OriginalPosition>>, hasTime = () => true) {
  const asked: { mapKey: string; positions: readonly Position[] }[] = []
  const manifest = { version: 1 as const, releaseSlug: SLUG, sequence: 7, files: [FILE], sourceFileCount: 1 }
  const held = {
    manifest: { ...manifest, completedAt: '2026-11-21T00:00:00Z' },
    chunks: createChunkMatcher([FILE]),
    byDebugId: new Map(),
    bytes: 1,
  }
  const deps: SymbolicateStacksDeps = {
    manifests: { read: async (_, slug) => (slug === SLUG ? held : undefined) },
    selectSourceMaps: async () => [],
    tracer: {
      hasTime: () => hasTime(),
      async trace({ mapKey }, positions) {
        asked.push({ mapKey, positions })
        return positions.map(({ line }) => {
          const position = {
            file: 'x.ts',
            line,
            column: 1,
            function: undefined,
            name: undefined,
            sourceLine: undefined,
            sourceLines: undefined,
          }
          return known[line] && { ...position, ...known[line] }
        })
      },
    },
    retryUntilStopped: (_, work) => work(),
    rules: { of: async () => NO_RULES, stored: async () => {} },
    now: () => 5,
  }
  return { deps, asked }
}

const stack = (stacktrace: string, serviceVersion = '1.0') => ({
  ...{ variantId: 'a'.repeat(32), serviceName: 'shop', type: 'Error', message: 'm', fingerprint: '' },
  ...{ serviceVersion, stacktrace, debugIds: {} },
  ...{ occurredAtUnixNano: '1', receivedAtMs: 2 },
})
const at = (name: string, place: string) => `    at ${name} (${place})`

const reasonsOf = (row: { readonly frames: string } | undefined) =>
  (JSON.parse(row?.frames ?? '[]') as StoredFrame[]).map(frame => storedFrameSchema.parse(frame).unresolvedReason)

const rowsOf = async (...args: Parameters<typeof symbolicateStacks>) => (await symbolicateStacks(...args)).rows

describe('the frames of a stack', () => {
  it('are named after the function in the source, else by the caller, else as sent', async () => {
    const { deps } = createDeps({
      1: {},
      2: { name: 'save' },
      3: { function: 'Cart.pay', name: 'send' },
      4: { function: '' },
    })
    const url = 'https://a.test/x.js'
    const lines = [1, 2, 3, 4].map(line => at(`min${line}`, `${url}:${line}:5`))
    const [row] = await rowsOf(deps, OWNER, [stack(`Error\n${lines.join('\n')}`)])
    const frames: StoredFrame[] = JSON.parse(row?.frames ?? '')
    for (const frame of frames) storedFrameSchema.parse(frame)
    expect(frames.map(frame => frame.function)).toEqual(['save', 'send', 'Cart.pay', ''])
    expect(frames[0]).toEqual({
      ...{ function: 'save', file: 'x.ts', line: 1, column: 1, resolved: true },
      generated: { function: 'min1', file: url, line: 1, column: 5 },
    })
    expect(row).toMatchObject({ releaseSlug: SLUG, sequence: 7, frameCount: 4, resolvedFrameCount: 4 })
  })

  it('without a possible map are neither looked up nor counted', async () => {
    const { deps, asked } = createDeps({ 1: {} })
    const lines = [
      at('f', 'https://a.test/x.js:1:5'),
      at('g', 'https://a.test/other.js:1:5'),
      at('h', 'node:fs:1:5'),
      at('i', 'chrome-extension://abc/x.js:1:5'),
      at('Array.map', '<anonymous>'),
    ]
    const [row] = await rowsOf(deps, OWNER, [stack(`Error\n${lines.join('\n')}`)])
    expect(asked.map(({ positions }) => positions.length)).toEqual([1])
    expect(asked[0]?.mapKey).toContain('ws_1')
    expect(row).toMatchObject({ frameCount: 2, resolvedFrameCount: 1 })
    expect(JSON.parse(row?.frames ?? '')).toHaveLength(5)
    expect(reasonsOf(row)).toEqual([undefined, 'no_map', undefined, undefined, undefined])
  })

  it('state why they are as sent', async () => {
    const { deps } = createDeps({})
    const sent = `Error\n${at('f', 'https://a.test/x.js:1:5')}`
    const reasons = async (version: string) => (await rowsOf(deps, OWNER, [stack(sent, version)])).map(reasonsOf)
    expect(await Promise.all(['1.0', '2.0', ''].map(reasons))).toEqual([
      [['no_position']],
      [['no_release']],
      [['no_version']],
    ])
    deps.tracer.trace = async () => undefined
    expect(await reasons('1.0')).toEqual([['unusable_map']])
  })

  it('are kept as sent without a release; a stack of another language makes no row', async () => {
    const { deps, asked } = createDeps({ 1: {} })
    const sent = `Error\n${at('f', 'https://a.test/x.js:1:5')}`
    const rows = await rowsOf(deps, OWNER, [
      stack(sent, ''),
      stack(sent, '2.0'),
      stack('java.lang.Error: x\n\tat a.B.c(B.java:12)'),
    ])
    expect(asked).toEqual([])
    expect(rows).toMatchObject([
      { serviceVersion: '', releaseSlug: '', sequence: 0, frameCount: 1, resolvedFrameCount: 0 },
      { serviceVersion: '2.0', releaseSlug: releaseSlugOf({ ...OWNER, name: '2.0' }), resolvedFrameCount: 0 },
    ])
  })
})

it('has lines of the source in frames of the application, while they are few', async () => {
  const lines = Array.from({ length: 11 }, () => 'x'.repeat(200))
  const sourceLines = { from: 1, lines }
  const known = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [i + 1, { sourceLines }]))
  const { deps } = createDeps({ ...known, 2: { sourceLines, file: 'node_modules/left/index.js' } })
  const sent = Array.from({ length: 30 }, (_, i) => at('f', `https://a.test/x.js:${i + 1}:5`))
  const [row] = await rowsOf(deps, OWNER, [stack(`Error\n${sent.join('\n')}`)])
  const frames = (JSON.parse(row?.frames ?? '') as StoredFrame[]).map(frame => storedFrameSchema.parse(frame))
  const withLines = [...frames.keys()].filter(i => frames[i]?.sourceLines !== undefined)
  // 14 of 2,200 characters fit.
  expect(withLines).toEqual([0, ...Array.from({ length: 13 }, (_, i) => i + 2)])
})

it('counts the offsets of Hermes from 0', async () => {
  const { deps, asked } = createDeps({ 1: {} })
  const lines = [at('f', 'address at x.js:1:184'), at('g', 'address at x.js:1:0'), at('h', 'x.js:1:184')]
  const [row] = await rowsOf(deps, OWNER, [stack(`Error: a\n${lines.join('\n')}`)])
  expect(asked[0]?.positions.map(({ column }) => column)).toEqual([185, 1, 184])
  expect(row).toMatchObject({ frameCount: 3, resolvedFrameCount: 3 })
  const frames: StoredFrame[] = JSON.parse(row?.frames ?? '')
  expect(frames.map(({ generated }) => generated.column)).toEqual([184, 0, 184])
})

it('finds the debug id of a frame by its address, else without its query', async () => {
  const looked: (readonly string[])[] = []
  const deps: SymbolicateStacksDeps = {
    ...createDeps({}).deps,
    async selectSourceMaps(_, ids) {
      looked.push(ids)
      return []
    },
  }
  const files = ['https://a.test/(a)/@x.js?v=1', 'https://a.test/y.js?v=2', 'https://a.test/z.js?v=1']
  const debugIds = {
    'https://a.test/(a)/%40x.js': 'id-x',
    'https://a.test/y.js?v=1': 'id-y',
    'https://a.test/z.js?v=1': 'id-z',
    'https://a.test/z.js': 'id-other',
  }
  const sent = `Error\n${files.map(file => at('f', `${file}:1:5`)).join('\n')}`
  await rowsOf(deps, OWNER, [{ ...stack(sent), debugIds }])
  expect(looked).toEqual([['id-x', 'id-z']])
})

it('leaves out the stacks for which their workspace has no time left', async () => {
  const { deps, asked } = createDeps({ 1: {} }, () => asked.length < 2)
  const stacks = Array.from({ length: 3 }, () => stack(`Error\n${at('f', 'https://a.test/x.js:1:5')}`))
  expect(await symbolicateStacks(deps, OWNER, stacks)).toMatchObject({ rows: [{}, {}], done: 2 })
})

describe('a variant', () => {
  const url = 'https://a.test/x.js'
  const known = {
    1: { function: 'Cart.pay', file: 'src/cart.ts' },
    2: { function: 'open', file: 'node_modules/db/open.js' },
    3: { function: 'load', file: 'src/load.ts' },
  }
  /** Returns the finding of an exception that is thrown by the sources themselves. */
  const findingOf = (stacktrace: string) =>
    identify({ ...OWNER, serviceName: 'shop', type: 'Error', message: 'm', stacktrace }).id
  const moved = async (...args: Parameters<typeof stack>) => {
    const { moves } = await symbolicateStacks(createDeps(known).deps, OWNER, [stack(...args)])
    return moves
  }

  it('moves to the finding of its mapped frames', async () => {
    const sent = `Error: m\n${at('a', `${url}:1:5`)}\n${at('b', `${url}:2:5`)}`
    const finding = findingOf(`Error: m\n${at('Cart.pay', 'src/cart.ts:1:1')}`)
    expect(await moved(sent)).toEqual([
      {
        ...{ workspaceId: OWNER.workspaceId, variantId: 'a'.repeat(32), findingId: finding, rank: rankOf(1, 7) },
        topFrame: 'Cart.pay\nsrc/cart.ts\n1',
      },
    ])
    // The frame of a library counts as such, though its script is the application's.
    expect(finding).not.toBe(
      findingOf(`Error: m\n${at('Cart.pay', 'src/cart.ts:1:1')}\n${at('open', 'src/open.js:2:1')}`),
    )
  })

  it('moves by the frames of each exception in its chain', async () => {
    const chain = (outer: string, cause: string) => `Error: m\n${outer}\ncaused by: TypeError: n\n${cause}`
    const finding = findingOf(chain(at('Cart.pay', 'src/cart.ts:1:1'), at('load', 'src/load.ts:3:1')))
    expect(await moved(chain(at('a', `${url}:1:5`), at('c', `${url}:3:5`)))).toMatchObject([{ findingId: finding }])
    const without = findingOf(`Error: m\n${at('Cart.pay', 'src/cart.ts:1:1')}\n${at('load', 'src/load.ts:3:1')}`)
    expect(finding).not.toBe(without)
  })

  it('keeps the frames that no map has', async () => {
    const sent = `Error: m\n${at('a', `${url}:1:5`)}\n${at('shop', 'https://a.test/other.js:1:5')}`
    const finding = findingOf(
      `Error: m\n${at('Cart.pay', 'src/cart.ts:1:1')}\n${at('shop', 'https://a.test/other.js:1:5')}`,
    )
    expect(await moved(sent)).toMatchObject([{ findingId: finding }])
  })

  it('does not move without a resolved frame', async () => {
    expect(await moved(`Error: m\n${at('a', `${url}:4:5`)}`)).toEqual([])
    expect(await moved(`Error: m\n${at('a', `${url}:1:5`)}`, '2.0')).toEqual([])
  })

  it('stays in the finding that its client has chosen, and gets its mapped frame', async () => {
    const { deps } = createDeps(known)
    const chosen = { ...stack(`Error: m\n${at('a', `${url}:1:5`)}`), fingerprint: 'checkout' }
    const { id: findingId } = identify({ ...OWNER, ...chosen })
    expect(await symbolicateStacks(deps, OWNER, [chosen])).toMatchObject({
      rows: [{ resolvedFrameCount: 1 }],
      moves: [{ findingId, topFrame: 'Cart.pay\nsrc/cart.ts\n1' }],
    })
  })
})

it('are grouped by rules after they are mapped, and later rules hold over earlier ones', async () => {
  const { deps } = createDeps({ 1: { file: 'src/cart.ts', function: 'pay' } })
  const rule = { name: 'carts', file: 'src/cart*', fingerprint: 'cart' }
  const moved = async (revision: number, rules: Parameters<typeof compileRules>[0]['rules']) => {
    const known = { ...deps, rules: { ...deps.rules, of: async () => compileRules({ revision, rules }) } }
    const sent = stack(`Error: m\n${at('f', 'https://a.test/x.js:1:5')}`)
    return (await symbolicateStacks(known, OWNER, [sent])).moves[0] as FindingMove
  }
  const [without, by, deleted] = [await moved(0, []), await moved(5, [rule]), await moved(6, [])]
  expect(by.findingId).toBe(findingOfRule(rule, { ...OWNER, serviceName: 'shop', type: 'Error' }))
  expect(deleted.findingId).toBe(without.findingId)
  expect(by.rank > without.rank && deleted.rank > by.rank).toBe(true)
  expect([without, by, deleted].map(({ rank }) => revisionOf(rank))).toEqual([0, 5, 6])
})
