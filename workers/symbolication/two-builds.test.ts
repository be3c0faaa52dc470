import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { MIB } from '../../schemas/units.ts'
import { identify } from '../../shared/grouping/fingerprint.ts'
import { NO_RULES } from '../../shared/grouping/rules.ts'
import { sourceMapKey } from '../../shared/object-store/object-keys.ts'
import { readStack } from '../../shared/stacks/read-stack.ts'
import { createChunkMatcher } from './match-chunk.ts'
import { type SymbolicateStacksDeps, symbolicateStacks } from './symbolicate-stacks.ts'
import { parseMap } from './tracing/parsed-map.ts'

/** Stacks of one application by scenario, and the maps of its files by path (test/cases/grouping/README.md). */
interface Build {
  readonly stacks: Readonly<Record<string, string>>
  readonly maps: Readonly<Record<string, unknown>>
}

const OWNER = { workspaceId: 'w', surfaceId: 's' }
const FOLDER = join(import.meta.dirname, '../../test/cases/grouping/builds')
const BUNDLERS = [...new Set(readdirSync(FOLDER).map(name => name.split('-')[0] as string))]
/** Bugs in functions that have names in the sources. */
const NAMED = ['price', 'owner', 'discount', 'refund', 'total', 'charge', 'lazy-render', 'lazy-measure']
NAMED.push('orders', 'users', 'stock', 'rates')
/** Bugs that occur twice. */
const TWICE = ['total', 'charge', 'orders']

describe.each(BUNDLERS)('two builds by %s, of which the second has eight lines more', async bundler => {
  const [first, second] = [await findingsOf(bundler, 1), await findingsOf(bundler, 2)]

  it('have the same findings', () => {
    expect(first.size).toBeGreaterThan(20)
    expect(Object.fromEntries(second)).toEqual(Object.fromEntries(first))
  })

  it('have a finding for each named function that fails, four of them async', () => {
    const found = NAMED.map(scenario => first.get(scenario))
    expect(found).not.toContain(undefined)
    expect(new Set(found).size).toBe(NAMED.length)
    for (const scenario of TWICE) expect(first.get(`${scenario}-other`), scenario).toBe(first.get(scenario))
  })
})

/** Returns the finding of each scenario, as symbolication decides on it. */
async function findingsOf(bundler: string, version: number): Promise<Map<string, string>> {
  const { stacks, maps }: Build = JSON.parse(readFileSync(join(FOLDER, `${bundler}-${version}.json`), 'utf8'))
  const deps = depsOf(maps)
  const found = new Map<string, string>()
  for (const [scenario, stacktrace] of Object.entries(stacks)) {
    const { type = '', message = '' } = readStack(stacktrace).links[0] ?? {}
    const exception = {
      serviceName: 'shop',
      serviceVersion: String(version),
      type,
      message,
      stacktrace,
      fingerprint: '',
    }
    const arrival = { variantId: scenario, debugIds: {}, occurredAtUnixNano: '1', receivedAtMs: 1 }
    const { moves } = await symbolicateStacks(deps, OWNER, [{ ...exception, ...arrival }])
    found.set(scenario, moves[0]?.findingId ?? identify({ ...OWNER, ...exception }).id)
  }
  return found
}

/** The stores, as far as symbolication sees them: each release has these maps, and `sha256` is the number of a map. */
function depsOf(maps: Build['maps']): SymbolicateStacksDeps {
  const parsed = Object.values(maps).map(map => parseMap(JSON.stringify(map), 64 * MIB))
  const common = { hash: '', debugId: '', size: 1, verified: true }
  const files = Object.keys(maps).map((path, i) => ({ ...common, path, chunkUrl: path, sha256: String(i) }))
  return {
    rules: { of: async () => NO_RULES, stored: async () => {} },
    manifests: {
      read: async (_, releaseSlug) => ({
        manifest: { version: 1, releaseSlug, sequence: 1, files, sourceFileCount: 1, completedAt: '' },
        ...{ chunks: createChunkMatcher(files), byDebugId: new Map(), bytes: 1 },
      }),
    },
    selectSourceMaps: async () => [],
    tracer: {
      hasTime: () => true,
      async trace({ mapKey }, positions) {
        const map = parsed[files.findIndex(({ sha256 }) => mapKey === sourceMapKey(OWNER.workspaceId, sha256))]
        return positions.map(position => map?.trace(position))
      },
    },
    retryUntilStopped: (_, work) => work(),
    now: () => 1,
  }
}
