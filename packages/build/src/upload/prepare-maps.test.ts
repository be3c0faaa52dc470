import { hash } from 'node:crypto'
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { debugIdStatement, STATEMENT_LENGTH } from './debug-id-statement.ts'
import { readEdited } from './edited-file.ts'
import { findBuildFiles } from './find-build-files.ts'
import { pairMaps } from './pair-maps.ts'
import { type PreparedMap, type PrepareOptions, prepareMap } from './prepare-maps.ts'
import { readBundle } from './read-bundle.ts'

const MAP = '{"version":3,"sources":["a.ts"],"mappings":"AAAA"}'
const A = 'aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee'
const B = '11111111-2222-4333-8444-555555555555'
/** The map as it is for the bundle with the statement: the first column is moved. */
const shifted = (id: string) =>
  MAP.replace('AAAA', `${vlq(STATEMENT_LENGTH)}AAA`).replace('}', `,"debugId":"${id}","x_penstockStatement":true}`)
const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** A positive number of ten bits at most in base64 VLQ. */
function vlq(value: number): string {
  const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
  return `${digits[((value * 2) % 32) + 32]}${digits[Math.floor((value * 2) / 32)]}`
}

describe('preparing a map', () => {
  let directory: string
  let temporaryDirectory: string
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'penstock-build-'))
    temporaryDirectory = await mkdtemp(join(tmpdir(), 'penstock-maps-'))
  })
  afterEach(async () => {
    await rm(directory, { recursive: true })
    await rm(temporaryDirectory, { recursive: true })
  })

  const put = (name: string, text: string) => writeFile(join(directory, name), text)
  const text = (name: string) => readFile(join(directory, name), 'utf8')

  async function prepare(options: Partial<PrepareOptions> = {}): Promise<(PreparedMap | { refused: string })[]> {
    const files = await findBuildFiles([{ directory }])
    const bundles = await Promise.all(files.bundles.map(readBundle))
    const { maps } = await pairMaps({ debugIdOf: async () => undefined, urlPrefix: '~/' }, files, bundles)
    const all = { inject: true, dryRun: false, writesMaps: true, temporaryDirectory, ...options }
    return Promise.all(maps.map(map => prepareMap(map, all)))
  }

  async function prepareOne(options?: Partial<PrepareOptions>): Promise<PreparedMap> {
    const [prepared] = await prepare(options)
    if (!prepared || 'refused' in prepared) throw new Error(`refused: ${prepared?.refused}`)
    return prepared
  }

  it('gives bundle and map the same id, keeps their modes, and leaves no temporary files', async () => {
    await put('a.js', 'f()\n//# sourceMappingURL=a.js.map\n')
    await put('a.js.map', MAP)
    await chmod(join(directory, 'a.js'), 0o555)
    await chmod(join(directory, 'a.js.map'), 0o640)
    const { debugId, injected, size } = await prepareOne()
    expect(debugId).toMatch(ID)
    expect(injected).toEqual(['a.js.map', 'a.js'])
    expect(await text('a.js')).toBe(
      `${debugIdStatement(debugId)}f()\n//# debugId=${debugId}\n//# sourceMappingURL=a.js.map\n`,
    )
    expect(await text('a.js.map')).toBe(shifted(debugId))
    expect(size).toBe((await text('a.js.map')).length)
    expect((await stat(join(directory, 'a.js'))).mode & 0o777).toBe(0o555)
    expect((await stat(join(directory, 'a.js.map'))).mode & 0o777).toBe(0o640)
    expect(await readdir(directory)).toEqual(['a.js', 'a.js.map'])
  })

  it('gives the map of bytecode an id, and leaves the bytecode as it is', async () => {
    const bytecode = Buffer.concat([
      Buffer.from('c61fbc03c103191f', 'hex'),
      Buffer.from('\n//# sourceMappingURL=x.map'),
    ])
    await writeFile(join(directory, 'main.jsbundle'), bytecode)
    await put('main.jsbundle.map', MAP)
    expect(await prepareOne()).toMatchObject({ debugId: expect.stringMatching(ID), injected: ['main.jsbundle.map'] })
    expect(await readFile(join(directory, 'main.jsbundle'))).toEqual(bytecode)
  })

  it('changes nothing the second time, and gives the same build the same ids', async () => {
    const build = async () => {
      await put('a.js', 'f()\n//# sourceMappingURL=a.js.map\n')
      await put('a.js.map', MAP)
    }
    await build()
    const first = await prepareOne()
    const [bundle, map] = [await text('a.js'), await text('a.js.map')]
    const modified = (await stat(join(directory, 'a.js'))).mtimeMs
    expect(await prepareOne()).toEqual({ ...first, injected: [] })
    expect([await text('a.js'), await text('a.js.map')]).toEqual([bundle, map])
    expect((await stat(join(directory, 'a.js'))).mtimeMs).toBe(modified)
    await build()
    expect(await prepareOne()).toEqual(first)
  })

  it.each([
    ['the bundle has one', A, undefined, A, ['a.js.map', 'a.js'], []],
    ['the map has one', undefined, B, B, ['a.js.map', 'a.js'], []],
    ['both have the same', A, A, A, ['a.js.map', 'a.js'], []],
    ['they differ: the id that running code reports is used', A, B, A, ['a.js.map', 'a.js'], []],
  ] as const)('uses the existing id: %s', async (_name, ofBundle, ofMap, id, injected, differing) => {
    await put('a.js', `f()\n${ofBundle ? `//# debugId=${ofBundle}\n` : ''}//# sourceMappingURL=a.js.map`)
    await put('a.js.map', ofMap ? MAP.replace('{', `{"debug_id":"${ofMap}",`) : MAP)
    expect(await prepareOne()).toMatchObject({ debugId: id, injected, differing })
    expect(await text('a.js')).toContain(`//# debugId=${id}\n`)
    expect(JSON.parse(await text('a.js.map'))).toMatchObject({ [ofMap ? 'debug_id' : 'debugId']: id })
  })

  it.each(['a.js', 'a.js.map'])('continues after it was interrupted, when %s was not written yet', async name => {
    const files = { 'a.js': 'f()\n//# sourceMappingURL=a.js.map\n', 'a.js.map': MAP }
    for (const [name, content] of Object.entries(files)) await put(name, content)
    const { debugId } = await prepareOne()
    const written = [await text('a.js'), await text('a.js.map')]
    await put(name, files[name as keyof typeof files])
    expect(await prepareOne()).toMatchObject({ debugId, injected: [name] })
    expect([await text('a.js'), await text('a.js.map')]).toEqual(written)
  })

  it('gives two bundles of one map the same id, and reports a bundle with another id', async () => {
    for (const name of ['a.js', 'b.js']) await put(name, 'f()\n//# sourceMappingURL=x.map')
    await put('c.js', `f()\n//# debugId=${A}\n//# sourceMappingURL=x.map`)
    await put('d.js', `f()\n//# debugId=${B}\n//# sourceMappingURL=x.map`)
    await put('x.map', MAP)
    expect(await prepareOne()).toMatchObject({ debugId: A, injected: ['x.map', 'a.js', 'b.js'], differing: ['d.js'] })
    expect(await text('b.js')).toContain(A)
    expect(await text('d.js')).not.toContain(A)
  })

  it('writes nothing in a dry run and nothing without injection, and returns the result', async () => {
    await put('a.js', 'f()\n//# sourceMappingURL=a.js.map')
    await put('a.js.map', MAP)
    const dry = await prepareOne({ dryRun: true })
    expect([await text('a.js'), await text('a.js.map')]).toEqual(['f()\n//# sourceMappingURL=a.js.map', MAP])
    expect(await prepareOne({ inject: false })).toMatchObject({ debugId: '', injected: [], size: MAP.length })
    expect([await text('a.js'), await text('a.js.map')]).toEqual(['f()\n//# sourceMappingURL=a.js.map', MAP])
    expect(await prepareOne()).toEqual(dry)
  })

  it.each([
    ['base64', `application/json;charset=utf-8;base64,${Buffer.from(MAP).toString('base64')}`],
    ['percent-encoded', `application/json,${encodeURIComponent(MAP)}`],
  ])('copies an inline map (%s) out of its bundle, and leaves it there', async (_name, url) => {
    const bundle = `${'f();'.repeat(50_000)}\n//# sourceMappingURL=data:${url}`
    await put('a.js', bundle)
    const { debugId, absolutePath, path, injected } = await prepareOne()
    expect({ path, injected }).toEqual({ path: 'a.js.map', injected: ['a.js'] })
    expect(await readFile(absolutePath, 'utf8')).toBe(MAP.replace('}', `,"debugId":"${debugId}"}`))
    expect(await readdir(directory)).toEqual(['a.js'])
    expect(await text('a.js')).toBe(bundle.replace('//#', `//# debugId=${debugId}\n//#`))
    expect(await prepareOne()).toMatchObject({ debugId, injected: [] })
  })

  it('finds the comment of an inline map that is longer than the first read', async () => {
    const large = JSON.stringify({ version: 3, mappings: 'A'.repeat(200_000) })
    await put(
      'a.js',
      `f()\n//# sourceMappingURL=data:application/json;base64,${Buffer.from(large).toString('base64')}\n`,
    )
    const { debugId, absolutePath } = await prepareOne()
    expect(JSON.parse(await readFile(absolutePath, 'utf8'))).toEqual({ ...JSON.parse(large), debugId })
    expect((await text('a.js')).startsWith(`f()\n//# debugId=${debugId}\n//# sourceMappingURL=data:`)).toBe(true)
  })

  it('leaves a map as it is that is removed after its upload, and reads it with its changes', async () => {
    await put('a.js', 'f()\n//# sourceMappingURL=a.js.map\n')
    await put('a.js.map', MAP)
    const prepared = await prepareOne({ writesMaps: false })
    expect(prepared.injected).toEqual(['a.js'])
    expect(await text('a.js.map')).toBe(MAP)
    const chunks = await Readable.from(readEdited(prepared)).toArray()
    expect(Buffer.concat(chunks).toString()).toBe(shifted(prepared.debugId))
    expect(prepared.size).toBe(shifted(prepared.debugId).length)
    expect(prepared.sha256).toBe(hash('sha256', shifted(prepared.debugId)))
    // The upload has failed: the command gives the map the id of its bundle.
    expect(await prepareOne()).toMatchObject({
      debugId: prepared.debugId,
      sha256: prepared.sha256,
      injected: ['a.js.map'],
    })
    expect(await text('a.js.map')).toBe(shifted(prepared.debugId))
  })

  it.each([
    ['{"version":2}', 'its version is not 3'],
    ['not JSON', 'it is not a JSON object'],
  ])('rejects %j and leaves its bundle unchanged', async (map, refused) => {
    await put('a.js', 'f()\n//# sourceMappingURL=a.js.map')
    await put('a.js.map', map)
    expect(await prepare()).toEqual([{ refused }])
    expect(await text('a.js')).toBe('f()\n//# sourceMappingURL=a.js.map')
  })
})
