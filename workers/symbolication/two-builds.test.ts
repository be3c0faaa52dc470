import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { MIB } from '../../schemas/units.ts'
import { readStack } from '../../shared/stacks/read-stack.ts'
import type { StackFrame } from '../../shared/stacks/stack.ts'
import { identify } from '../exceptions/fingerprint.ts'
import { type ParsedMap, parseMap } from './tracing/parsed-map.ts'

/** Stacks of one application by scenario, and the maps of its files by path (test/cases/grouping/README.md). */
interface Build {
  readonly stacks: Readonly<Record<string, string>>
  readonly maps: Readonly<Record<string, unknown>>
}

const FOLDER = join(import.meta.dirname, '../../test/cases/grouping/builds')
const BUNDLERS = [...new Set(readdirSync(FOLDER).map(name => name.split('-')[0] as string))]
/** Bugs in functions that have names in the sources. */
const NAMED = ['price', 'owner', 'discount', 'refund', 'total', 'charge', 'lazy-render', 'lazy-measure']
NAMED.push('orders', 'users', 'stock', 'rates')
/** Bugs that occur twice. */
const TWICE = ['total', 'charge', 'orders']

describe.each(BUNDLERS)('two builds by %s, of which the second has eight lines more', bundler => {
  const [first, second] = [fingerprints(bundler, 1), fingerprints(bundler, 2)]

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

function fingerprints(bundler: string, version: number): Map<string, string> {
  const { stacks, maps }: Build = JSON.parse(readFileSync(join(FOLDER, `${bundler}-${version}.json`), 'utf8'))
  const parsed = new Map(Object.entries(maps).map(([path, map]) => [path, parseMap(JSON.stringify(map), 64 * MIB)]))
  return new Map(Object.entries(stacks).map(([scenario, stack]) => [scenario, findingOfMapped(stack, parsed)]))
}

function findingOfMapped(stack: string, maps: ReadonlyMap<string, ParsedMap>): string {
  const { type = '', message = '', frames = [] } = readStack(stack).links[0] ?? {}
  const lines = frames.map((_, i) => `    at ${mapFrame(frames, i, maps)}`)
  const stacktrace = [`${type}: ${message}`, ...lines].join('\n')
  return identify({ workspaceId: 'w', surfaceId: 's', serviceName: 'shop', type, message, stacktrace }).id
}

/** Writes a frame with its original position. Without the source, the function is named as its caller calls it. */
function mapFrame(frames: readonly StackFrame[], i: number, maps: ReadonlyMap<string, ParsedMap>): string {
  const [frame, caller] = [frames[i] as StackFrame, frames[i + 1]]
  const [original, calledFrom] = [frame, caller].map(
    one => one && maps.get(URL.parse(one.file)?.pathname ?? '')?.trace(one),
  )
  const { file, line, column } = original ?? frame
  const name = original?.function ?? calledFrom?.name ?? frame.function
  return name === '' ? `${file}:${line}:${column}` : `${name} (${file}:${line}:${column})`
}
