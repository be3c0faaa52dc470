import { pino } from 'pino'
import { describe, expect, it } from 'vitest'
import type { ManifestFile } from '../../schemas/records/manifest.ts'
import { NO_RULES } from '../../shared/grouping/rules.ts'
import { TransientError } from '../../shared/runtime/errors.ts'
import { until } from '../../test/support/until.ts'
import { createChunkMatcher } from './match-chunk.ts'
import { NewStacks } from './resolve-new-stacks.ts'
import type { MapReference } from './tracing/map-tracer.ts'

const FILE: ManifestFile = {
  ...{ path: 'x.js.map', hash: '', debugId: '', chunkUrl: '~/x.js', sha256: 'a'.repeat(64), size: 1, verified: true },
}
const MANIFEST = { version: 1 as const, releaseSlug: 'rel', sequence: 7, files: [FILE], sourceFileCount: 1 }
const ORIGINAL = { file: 'src/x.ts', line: 1, column: 1, function: 'pay', name: undefined, sourceLine: undefined }

function create(trace: (map: MapReference) => Promise<void>, hasTime: (workspaceId: string) => boolean = () => true) {
  const loaded = { manifest: { ...MANIFEST, completedAt: '2026-11-21T00:00:00Z' }, bytes: 1 }
  return new NewStacks({
    rules: { of: async () => NO_RULES, stored: async () => {} },

    manifests: { read: async () => ({ ...loaded, chunks: createChunkMatcher([FILE]), byDebugId: new Map() }) },
    selectSourceMaps: async () => [],
    tracer: {
      ...{ pid: 1, hits: 0, misses: 0, async close() {} },
      hasTime,
      async trace(map, positions) {
        await trace(map)
        return positions.map(() => ({ ...ORIGINAL, sourceLines: undefined }))
      },
    },
    logger: pino({ level: 'silent' }),
  })
}

const stack = (n: number, workspaceId = 'ws_1', surfaceId = 'srf_1') => ({
  ...{ workspaceId, surfaceId, receivedAtMs: 1, variantId: n.toString(16).padStart(32, '0'), occurredAtUnixNano: '1' },
  ...{ serviceName: 'shop', serviceVersion: '1', type: 'Error', message: '', fingerprint: '', debugIds: {} },
  stacktrace: `Error: x\n    at f${n} (https://a.test/x.js:1:2)`,
})
type Stack = ReturnType<typeof stack>

/** Returns the variants that are reported, and the call. */
function run(newStacks: NewStacks, stacks: readonly Stack[], signal = new AbortController().signal) {
  const moved: number[] = []
  const done = newStacks.resolve(stacks, signal, ({ variantId }) => moved.push(Number.parseInt(variantId, 16)))
  return { moved, done }
}

describe('the stacks of a batch', () => {
  it('are resolved with the maps of their surface, also beside a workspace whose maps fail', async () => {
    const newStacks = create(async ({ workspaceId }) => {
      if (workspaceId === 'ws_2') throw new Error('the object store refuses')
    })
    const stacks = [stack(1), stack(2, 'ws_2'), stack(3, 'ws_1', 'srf_2'), stack(4, 'ws_3')]
    const { moved, done } = run(newStacks, stacks)
    await done
    expect(moved.sort()).toEqual([1, 3, 4])
  })

  it('are tried again while another worker parses their map', async () => {
    let attempts = 0
    const newStacks = create(async () => {
      if (++attempts < 3) throw new TransientError('another worker parses this source map')
    })
    const { moved, done } = run(newStacks, [stack(1)])
    await done
    expect(moved).toEqual([1])
  })

  it('are not resolved while their workspace has no time', async () => {
    const { moved, done } = run(
      create(
        async () => {},
        workspaceId => workspaceId !== 'ws_2',
      ),
      [stack(1), stack(2, 'ws_2')],
    )
    await done
    expect(moved).toEqual([1])
  })

  it('are left out after the signal, and while an earlier stack of their workspace takes a map too long', async () => {
    const { promise: slow, resolve: answer } = Promise.withResolvers<void>()
    const traced: string[] = []
    const newStacks = create(async ({ workspaceId }) => {
      traced.push(workspaceId)
      if (workspaceId === 'ws_1') await slow
    })
    const deadline = new AbortController()
    const first = run(newStacks, [stack(1), stack(2), stack(3, 'ws_2')], deadline.signal)
    await until('the other workspace is resolved', async () => first.moved.length === 1)
    deadline.abort()
    const second = run(newStacks, [stack(4), stack(5, 'ws_2')])
    await second.done
    expect(second.moved).toEqual([5])
    answer()
    await first.done
    expect(first.moved).toEqual([3, 1])
    expect(traced).toEqual(['ws_1', 'ws_2', 'ws_2'])
    const third = run(newStacks, [stack(4)])
    await third.done
    expect(third.moved).toEqual([4])
  })
})
