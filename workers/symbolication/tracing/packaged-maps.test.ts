import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type RawSourceMap, SourceMapConsumer } from 'source-map-js'
import { expect, it } from 'vitest'
import { GIB } from '../../../schemas/units.ts'
import { rounds } from '../../../test/support/length.ts'
import { originalPath } from './original-path.ts'
import { type OriginalPosition, type Position, parseMap } from './parsed-map.ts'

const ROOT = join(import.meta.dirname, '../../..')
/** 76 in a short run. */
const MAPS = rounds(1_520)
const POSITIONS = 40

/** The maps that the packages of this repository ship, of each package as many. */
function mapsOfPackages(): string[] {
  const { dependencies, devDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const packages = Object.keys({ ...dependencies, ...devDependencies }).map(name => {
    const pattern = `node_modules/${name}/**/*.{js,mjs,cjs}.map`
    return globSync(pattern, { cwd: ROOT, exclude: path => path.endsWith('/node_modules') }).sort()
  })
  const most = Math.max(...packages.map(({ length }) => length))
  const byTurns = Array.from({ length: most }, (_, i) => packages.flatMap(maps => maps[i] ?? []))
  return byTurns.flat().slice(0, MAPS)
}

/**
 * Positions in generated code, the same in each run: in any line with a mapping, up to a few columns behind its last one. Where
 * two mappings are of one column, both are right, so that it is left out.
 */
function positionsIn(map: SourceMapConsumer): Position[] {
  const columnsOf = new Map<number, number[]>()
  map.eachMapping(({ generatedLine, generatedColumn }) => {
    const columns = columnsOf.get(generatedLine) ?? []
    columnsOf.set(generatedLine, columns)
    columns.push(generatedColumn)
  })
  const lines = [...columnsOf]
  let seed = 1
  const below = (limit: number) => {
    seed = (seed * 48_271) % 2_147_483_647
    return seed % limit
  }
  return Array.from({ length: lines.length === 0 ? 0 : POSITIONS }, () => {
    const [line, columns] = lines[below(lines.length)] ?? [1, []]
    const column = below((columns.at(-1) ?? 0) + 5)
    const mapped = columns.findLast(one => one <= column)
    return columns.filter(one => one === mapped).length > 1 ? [] : { line, column: column + 1 }
  }).flat()
}

/** Where another library finds a position. */
function expectedAt(map: SourceMapConsumer, { line, column }: Position): Partial<OriginalPosition> | undefined {
  const found = map.originalPositionFor({ line, column: column - 1 })
  if (found.source === null) return undefined
  const file = originalPath(found.source, '')
  const content = map.sourceContentFor(found.source, true)
  const sourceLine = content
    ?.split(/\r\n|[\n\r\u2028\u2029]/)
    [found.line - 1]?.trim()
    .slice(0, 200)
  return { file, line: found.line, column: found.column + 1, name: found.name ?? undefined, sourceLine }
}

it('finds the positions in maps from npm that another library finds', () => {
  const paths = mapsOfPackages()
  const differences: object[] = []
  let positions = 0
  for (const path of paths) {
    const text = readFileSync(join(ROOT, path), 'utf8')
    const other = new SourceMapConsumer(JSON.parse(text) as RawSourceMap)
    const own = parseMap(text, GIB, () => undefined)
    for (const position of positionsIn(other)) {
      positions++
      const { function: _, sourceLines: __, ...found } = own.trace(position) ?? {}
      const expected = expectedAt(other, position) ?? {}
      if (JSON.stringify(found) !== JSON.stringify(expected)) differences.push({ path, position, found, expected })
    }
  }
  expect(differences).toEqual([])
  expect(paths.length).toBeGreaterThanOrEqual(76)
  expect(positions).toBeGreaterThanOrEqual(2_790)
})
