import { describe, expect, it } from 'vitest'
import { allImports, type Import } from './imports.ts'
import { DOORS, INSIDE, type Layers, ROOMS } from './layers.ts'

const imports = allImports()
/** Tests may import anything. Circles are Biome's to find (`noImportCycles`, type imports included). */
const product = imports.filter(({ from }) => !from.endsWith('.test.ts') && !from.startsWith('test/'))

/** Returns the layer and the folder that a file belongs to, by the longest listed path that it begins with. */
function positionOf(file: string, layers: Layers): { layer: number; path: string } | undefined {
  const candidates = layers.flatMap((paths, layer) => paths.map(path => ({ layer, path })))
  return candidates
    .filter(({ path }) => file === path || (path.endsWith('/') && file.startsWith(path)))
    .sort((a, b) => b.path.length - a.path.length)[0]
}

function wrongArrows(all: readonly Import[], layers: Layers): string[] {
  return all.flatMap(({ from, line, to }) => {
    const importer = positionOf(from, layers)
    const imported = positionOf(to, layers)
    if (!importer || !imported || importer.path === imported.path || imported.layer < importer.layer) return []
    const relation = imported.layer === importer.layer ? 'its sibling' : 'a layer above it,'
    return [`${from}:${line} imports ${relation} ${to}`]
  })
}

describe('the arrows', () => {
  it('are found where they are known to be', () => {
    expect(imports).toContainEqual(expect.objectContaining({ from: 'ingest/main.ts', to: 'ingest/connect.ts' }))
  })

  it('run down between rooms, and never between processes', () => {
    // One file mounts the routes of two processes at one address, for `npm start`; it is above both.
    expect(wrongArrows(product, ROOMS)).toEqual([])
  })

  it.each(Object.entries(INSIDE))('run down inside %s, and never between features', (_room, layers) => {
    expect(wrongArrows(product, layers)).toEqual([])
  })

  it('name a layer for every file of a room that has layers', () => {
    const files = new Set(product.flatMap(({ from, to }) => [from, to]))
    const homeless = [...files].filter(file => {
      const layers = INSIDE[file.split('/', 1)[0] ?? '']
      return layers !== undefined && !positionOf(file, layers)
    })
    expect(homeless).toEqual([])
  })

  it('reach the doors of a process only from the files that are named for it', () => {
    const wrong = product.flatMap(({ from, line, to }) => {
      const importers = DOORS[to]
      const mayImport = importers === undefined || importers.some(path => from.startsWith(path))
      return mayImport ? [] : [`${from}:${line} imports ${to}`]
    })
    expect(wrong).toEqual([])
  })
})
