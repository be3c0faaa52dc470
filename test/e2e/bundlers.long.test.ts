import { randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { build as esbuild } from 'esbuild'
import { Redis } from 'ioredis'
import { rollup } from 'rollup'
import { createBuilder } from 'vite'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import webpack from 'webpack'
import esbuildPlugin from '../../packages/build/src/esbuild.ts'
import { uploadDirectory } from '../../packages/build/src/index.ts'
import type { PenstockOptions } from '../../packages/build/src/options.ts'
import rolldownPlugin from '../../packages/build/src/rolldown.ts'
import rollupPlugin from '../../packages/build/src/rollup.ts'
import rspackPlugin from '../../packages/build/src/rspack.ts'
import type { UploadReport } from '../../packages/build/src/upload-report.ts'
import vitePlugin from '../../packages/build/src/vite.ts'
import webpackPlugin from '../../packages/build/src/webpack.ts'
import { createDirectory } from '../../shared/directory/directory.ts'
import { generateKey } from '../../shared/ids/credentials.ts'
import { BUILD_WITH, type BundlerName } from '../support/bundlers/build-with.ts'
import { framesOf } from '../support/bundlers/frames-of.ts'
import { FAILING_LINE, writeApp } from '../support/bundlers/write-app.ts'
import { findBrowser, startBrowser, type TestBrowser } from '../support/pages/browser.ts'
import { type FailingPages, serveFailingPages, writeReporters } from '../support/pages/failing-page.ts'
import { issueKey } from '../support/services/edge.ts'
import { type Stack, startStack } from '../support/services/stack.ts'
import { until } from '../support/until.ts'

const MODULES = 30
const MAP = '{"version":3,"sources":["a.js"],"names":[],"mappings":"AAAA"}'
const browserFound = await findBrowser()
if ('missing' in browserFound) console.warn(`no test of bundlers in a browser: missing ${browserFound.missing}`)

let stack: Stack
let root: string
let pages: FailingPages
let browser: TestBrowser | undefined

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'penstock-bundlers-'))
  ;[stack, pages] = await Promise.all([startStack(), serveFailingPages(root), writeReporters(root)])
  await writeApp(join(root, 'app'), MODULES)
  if (!('missing' in browserFound)) browser = await startBrowser(browserFound.path)
})

afterAll(async () => {
  await browser?.stop()
  await pages?.stop()
  await stack?.stop()
  await rm(root, { recursive: true, force: true })
})

const PLUGINS: Record<BundlerName, (options: PenstockOptions) => object> = {
  vite: vitePlugin,
  rollup: rollupPlugin,
  rolldown: rolldownPlugin,
  webpack: webpackPlugin,
  rspack: rspackPlugin,
  esbuild: esbuildPlugin,
}
const BUNDLERS = Object.keys(BUILD_WITH) as BundlerName[]

describe('an application that is built with the plugin', () => {
  it.each(BUNDLERS)('by %s has its maps in the release only, and a second build sends none', async bundler => {
    const { directory, report } = await build(bundler)
    expect(report).toMatchObject({ result: 'ok', fileCount: 1, removedCount: 1, sentBytes: report.totalBytes })
    const files = await filesIn(directory)
    expect(files.filter(file => file.endsWith('.map'))).toEqual([])
    const [{ debugId = '', bundles: [script = ''] = [] } = {}] = report.files
    const code = await readFile(join(directory, script), 'utf8')
    expect(code).toMatch(/^(?:['"]use strict['"];)?;!function\(\)\{try\{/)
    expect(code).toMatch(new RegExp(`\n//# debugId=${debugId}\n?$`))
    expect(code).not.toContain('sourceMappingURL')

    const again = (await build(bundler)).report
    expect(again).toMatchObject({ result: 'ok', fileCount: 1, removedCount: 1, sentBytes: 0 })
    expect(again.files).toMatchObject([{ outcome: 'known', debugId, bundles: [script] }])
    expect(await readFile(join(directory, script), 'utf8')).toBe(code)
  })

  it.skipIf('missing' in browserFound).each(BUNDLERS)(
    'by %s shows where its source has failed in a browser that knows its debug ids',
    async bundler => {
      const { directory, report } = await build(bundler)
      const script = join(directory, report.files[0]?.bundles[0] ?? '')
      const page = await (browser as TestBrowser).context.newPage()
      await page.goto(pages.pageOf(relative(root, script)))
      await page.waitForFunction('globalThis.shop !== undefined')
      const service = `${bundler}-shop`
      // No release has this version, so the maps are found by their debug ids.
      const settings = { url: `${stack.ingestUrl}/drain/v1/traces`, publicKey: stack.secrets.publicKey }
      await page.evaluate(`failAndReport(${JSON.stringify({ ...settings, service, version: 'unknown' })})`)
      const ids = (await page.evaluate('Object.values(globalThis._penstockDebugIds)')) as string[]
      expect(ids).toEqual(report.files.map(({ debugId }) => debugId))
      await page.close()

      const frame = await until('the frame is resolved', async () => {
        const frames = await framesOf(stack, service)
        return frames?.[0]?.resolved ? frames[0] : undefined
      })
      expect(frame).toMatchObject({
        function: 'lookUp',
        line: FAILING_LINE,
        file: expect.stringMatching(/src\/pricing\.js$/),
      })
      expect(frame.sourceLine).toContain("throw new RangeError('no price of")
    },
  )
})

describe('a build whose upload fails', () => {
  const unreachable = { url: 'http://127.0.0.1:9', retryTimeoutMs: 0 }

  it.each(BUNDLERS)('by %s succeeds, keeps its maps and prints the reason', async bundler => {
    const written = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
    const { directory, report } = await build(bundler, { ...unreachable, version: 'failing' })
    const text = written.mock.calls.join('\n')
    written.mockRestore()
    expect(report).toMatchObject({ result: 'pipeline_failed', removedCount: 0, sentBytes: 0 })
    expect(text).toContain('[penstock] SOURCE MAPS WERE NOT UPLOADED (pipeline_failed): registering the release')
    expect((await filesIn(directory)).filter(file => file.endsWith('.map'))).toHaveLength(1)
  })

  it.each(BUNDLERS)('by %s fails if that is configured', async bundler => {
    await expect(build(bundler, { ...unreachable, version: 'failing', failBuild: true })).rejects.toThrow(
      'not uploaded',
    )
  })

  it.each([
    ['api_key_wrong_prefix', () => ({ key: stack.secrets.publicKey })],
    ['api_key_unreadable', () => ({ key: 'sk_short' })],
    ['api_key_rejected', () => ({ key: generateKey('secret') })],
  ] as const)('has the outcome %s', async (result, options) => {
    expect((await build('esbuild', options())).report.result).toBe(result)
  })

  it('has the outcome api_key_scope_mismatch', async () => {
    const redis = new Redis(stack.services.redisUrl)
    try {
      const { workspaceId, surfaceId } = stack.secrets
      const key = await issueKey(createDirectory(redis), { kind: 'secret', workspaceId, surfaceId, scopes: [] })
      expect((await build('esbuild', { key })).report.result).toBe('api_key_scope_mismatch')
    } finally {
      redis.disconnect()
    }
  })

  it.each([
    ['no_source_maps', 'f()', 'contains no source map'],
    ['client_maps_unmapped', 'f()\n//# sourceMappingURL=gone.js.map', 'gone.js.map'],
  ])('has the outcome %s', async (result, code, message) => {
    const directory = join(root, result)
    await mkdir(directory)
    await writeFile(join(directory, 'a.js'), code)
    if (result === 'client_maps_unmapped') await writeFile(join(directory, 'b.js.map'), MAP)
    const report = await uploadDirectory(directory, settings({ version: result }))
    expect(report).toMatchObject({ result, message: expect.stringContaining(message), removedCount: 0 })
  })
})

describe('a build of many passes', () => {
  it('by rollup is uploaded once after the number of passes', async () => {
    const reports: UploadReport[] = []
    const plugin = () =>
      rollupPlugin({ ...settings({ passes: 2, version: 'rollup passes' }), onReport: r => reports.push(r) })
    for (const pass of ['client', 'server']) {
      const bundle = await rollup({ input: join(root, 'app/src/main.js'), plugins: [plugin()] })
      await bundle.write({ dir: join(root, 'rollup-passes', pass) })
      await bundle.close()
    }
    expect(summary(reports)).toEqual([['ok', 'client/main.js ~/main.js', 'server/main.js ~/main.js']])
  })

  it('by webpack is uploaded once after the last configuration', async () => {
    const reports: UploadReport[] = []
    const options = { ...settings({ version: 'webpack passes' }), onReport: (r: UploadReport) => reports.push(r) }
    const configuration = (name: string, target: 'web' | 'node') => ({
      mode: 'production' as const,
      entry: join(root, 'app/src/main.js'),
      target,
      output: { path: join(root, 'webpack-passes', name) },
      plugins: [webpackPlugin(options)],
    })
    const compiler = webpack([configuration('client', 'web'), configuration('server', 'node')])
    await new Promise<void>((resolve, reject) => compiler?.run(error => (error ? reject(error) : resolve())))
    expect(summary(reports)).toEqual([['ok', 'client/main.js ~/main.js', 'server/main.js ~/main.js']])
  })

  it('by Vite is uploaded once after all environments', async () => {
    const reports: UploadReport[] = []
    const build = (name: string) => ({
      outDir: join(root, 'vite-passes', name),
      rollupOptions: { input: join(root, 'app/src/main.js'), output: { entryFileNames: 'main.js' } },
    })
    const builder = await createBuilder({
      root: join(root, 'app'),
      configFile: false,
      logLevel: 'error',
      builder: {},
      environments: { client: { build: build('client') }, ssr: { build: build('server') } },
      plugins: [vitePlugin({ ...settings({ version: 'vite passes' }), onReport: r => reports.push(r) })],
    })
    await builder.buildApp()
    expect(summary(reports)).toEqual([['ok', 'client/main.js ~/main.js', 'server/main.js ~/main.js']])
  })

  it('in several processes leaves its maps to the command', async () => {
    const directory = join(root, 'deferred')
    const onReport = vi.fn()
    const plugins = [esbuildPlugin({ ...settings({ deferUpload: true }), onReport })]
    await esbuild({ entryPoints: [join(root, 'app/src/main.js')], outdir: directory, bundle: true, plugins })
    expect(onReport).not.toHaveBeenCalled()
    expect(await filesIn(directory)).toEqual(['main.js', 'main.js.map'])
  })
})

function settings(options: PenstockOptions): PenstockOptions {
  return { url: stack.ingestUrl, key: stack.secrets.secretKey, ...options }
}

let builds = 0

/** Builds the application. Builds of one bundler have the same output, and each has a release of its own. */
async function build(bundler: BundlerName, options: PenstockOptions = {}) {
  const directory = join(root, 'built', bundler)
  await rm(directory, { recursive: true, force: true })
  const reports: UploadReport[] = []
  const version = `${bundler}-${++builds}-${randomBytes(3).toString('hex')}`
  const penstock = { ...settings({ version, ...options }), onReport: (report: UploadReport) => reports.push(report) }
  await BUILD_WITH[bundler]({ root: join(root, 'app'), directory, plugin: PLUGINS[bundler](penstock) })
  const [report] = reports
  if (!report || reports.length > 1) throw new Error(`the build has made ${reports.length} reports`)
  return { directory, report }
}

async function filesIn(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true })
  return entries.flatMap(entry => (entry.isFile() ? entry.name : [])).sort()
}

function summary(reports: readonly UploadReport[]) {
  return reports.map(({ result, files }) => [result, ...files.map(file => `${file.bundles[0]} ${file.chunkUrl}`)])
}
