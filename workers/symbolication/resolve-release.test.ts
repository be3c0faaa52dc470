import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ReleaseStackRow } from '../../clickhouse/queries/releases/select-release-stacks.ts'
import type { SourceMapRow } from '../../clickhouse/queries/releases/select-source-maps.ts'
import type { FindingFramesRow } from '../../clickhouse/tables/finding-frames-table.ts'
import type { ManifestFile } from '../../schemas/records/manifest.ts'
import { NO_RULES } from '../../shared/grouping/rules.ts'
import { releaseSlugOf } from '../../shared/ids/release-slug.ts'
import { ORIGINAL } from '../../test/support/original-position.ts'
import type { LoadedManifest } from './manifest-reader.ts'
import { createChunkMatcher } from './match-chunk.ts'
import { type ResolveReleaseDeps, resolveRelease } from './resolve-release.ts'
import { type ReceivedStack, symbolicateStacks } from './symbolicate-stacks.ts'

const OWNER = { workspaceId: 'ws_1', surfaceId: 'srf_1' }
const SCRIPT = 'https://a.test/x.js'
const DEBUG_ID = '85314830-023f-4cf1-a267-535f4e37bb17'

function manifestOf(slug: string): LoadedManifest {
  const common = { hash: '', sha256: 'a'.repeat(64), size: 1, verified: true }
  const file: ManifestFile = { path: 'x.js.map', debugId: DEBUG_ID, chunkUrl: SCRIPT, ...common }
  const completedAt = '2026-11-21T00:00:00Z'
  return {
    manifest: { version: 1, releaseSlug: slug, sequence: 7, files: [file], sourceFileCount: 1, completedAt },
    chunks: createChunkMatcher([file]),
    byDebugId: new Map([[DEBUG_ID, file]]),
    bytes: 1,
  }
}

/** The stores, as far as these two parts see them, and what is done to them in the order that a scheduler chooses. */
function createStores(scheduler: fc.Scheduler, stack: ReceivedStack, release: string) {
  const slug = releaseSlugOf({ ...OWNER, name: release })
  const exceptions: ReleaseStackRow[] = []
  const frames: FindingFramesRow[] = []
  const index: SourceMapRow[] = []
  let holding: LoadedManifest | undefined
  const step = <A extends unknown[], R>(name: string, work: (...args: A) => R): ((...args: A) => Promise<R>) => {
    const named = { [name]: async (...args: A) => work(...args) }[name] as (...args: A) => Promise<R>
    return scheduler.scheduleFunction(named)
  }
  const deps: ResolveReleaseDeps = {
    manifests: { read: step('read manifest', (_, asked) => (asked === slug ? holding : undefined)) },
    selectSourceMaps: step('look up debug ids', (_, ids) => index.filter(row => ids.includes(row.debugId))),
    tracer: { hasTime: () => true, trace: async (_, positions) => positions.map(() => ORIGINAL) },
    selectReleaseStacks: step('read stacks', () => [...exceptions]),
    insertSourceMaps: step('fill index', rows => {
      for (const row of rows) index.push({ ...row, sequence: String(row.sequence) })
    }),
    insertFrames: step('store frames', rows => void frames.push(...rows)),
    insertMoves: step('move findings', () => {}),
    retryUntilStopped: (_, work) => work(),
    rules: { of: async () => NO_RULES, stored: async () => {} },
    now: () => 0,
  }
  return {
    /** Handles an exception like the pools: stores it, then requests and symbolicates its stack. */
    async throwOnce() {
      await step('store exception', () => {
        exceptions.push({ ...stack, receivedAtMs: String(stack.receivedAtMs) })
      })()
      await deps.insertFrames((await symbolicateStacks(deps, OWNER, [stack])).rows, 'stack')
    },
    /** Handles a completion: makes the manifest current, then requests the release. */
    async complete() {
      await step('swap manifest', () => {
        holding = manifestOf(slug)
      })()
      await resolveRelease(deps, OWNER, { kind: 'release', slug, release, receivedAtMs: 0, token: 'release' })
    },
    /** The row that holds, as `finding_frames` and the query of the API have it. */
    holdingFrames() {
      const rank = ({ resolvedFrameCount, sequence }: FindingFramesRow) =>
        (resolvedFrameCount > 0 ? 2 ** 40 : 0) + sequence
      return frames.toSorted((a, b) => rank(b) - rank(a))[0]
    },
  }
}

describe('a release whose maps arrive while its exceptions do', () => {
  const thrown = {
    ...{ variantId: 'a'.repeat(32), serviceName: 'shop', type: 'Error', message: 'm', fingerprint: '' },
    stacktrace: `Error\n    at f (${SCRIPT}:1:2)`,
    occurredAtUnixNano: '1',
    receivedAtMs: 0,
  }
  it.each([
    ['by their address', { ...thrown, serviceVersion: '1.0', debugIds: {} }],
    ['by debug id', { ...thrown, serviceVersion: 'another', debugIds: { [SCRIPT]: DEBUG_ID } }],
  ])('leaves none of them unresolved, in whatever order things happen (%s)', async (_, stack) => {
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), async scheduler => {
        const stores = createStores(scheduler, stack, '1.0')
        const both = [stores.throwOnce(), stores.complete()]
        await scheduler.waitFor(Promise.all(both))
        expect(stores.holdingFrames()).toMatchObject({ frameCount: 1, resolvedFrameCount: 1 })
      }),
      { numRuns: 500 },
    )
  })
})

it('continues a release whose workspace had no time left where it stopped, and ends', async () => {
  let turns = 0
  const page = Array.from({ length: 450 }, (_, i) => ({
    ...{ variantId: String(i).padStart(32, '0'), serviceName: 'shop', type: 'Error', message: 'm', fingerprint: '' },
    serviceVersion: '1.0',
    stacktrace: `Error\n    at f (${SCRIPT}:1:2)`,
    debugIds: {},
    occurredAtUnixNano: '1',
    receivedAtMs: '0',
  }))
  const resolved: string[] = []
  const deps: ResolveReleaseDeps = {
    manifests: { read: async () => manifestOf('rel_1') },
    selectSourceMaps: async () => [],
    // Every hundredth stack finds no time left.
    tracer: { hasTime: () => ++turns % 100 !== 0, trace: async (_, positions) => positions.map(() => ORIGINAL) },
    selectReleaseStacks: async ({ after, limit }) => page.filter(row => row.variantId > after).slice(0, limit),
    insertSourceMaps: async () => {},
    insertFrames: async rows => void resolved.push(...rows.map(row => row.variantId)),
    insertMoves: async () => {},
    retryUntilStopped: (_, work) => work(),
    rules: { of: async () => NO_RULES, stored: async () => {} },
    now: () => 0,
  }
  let after: Awaited<ReturnType<typeof resolveRelease>>['after']
  let runs = 0
  do {
    const request = { kind: 'release', slug: 'rel_1', release: '1.0', receivedAtMs: 0, token: 'x', after } as const
    ;({ after } = await resolveRelease(deps, OWNER, request))
    runs++
  } while (after !== undefined)
  expect(runs).toBe(5)
  expect(resolved).toEqual(page.map(row => row.variantId))
})
