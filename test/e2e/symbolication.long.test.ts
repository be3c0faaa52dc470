import { execFile } from 'node:child_process'
import { hash } from 'node:crypto'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type FindingFrame, findingAnswerSchema, findingsPageSchema } from '../../schemas/http/findings/schemas.ts'
import { findBrowser, startBrowser, type TestBrowser } from '../support/pages/browser.ts'
import { BUNDLERS, type BuiltApp, type Bundler, buildApp, ORIGINAL_FRAMES } from '../support/pages/built-app.ts'
import {
  type FailingPages,
  type ReportSettings,
  serveFailingPages,
  writeReporters,
} from '../support/pages/failing-page.ts'
import { type Stack, startStack } from '../support/services/stack.ts'
import { until } from '../support/until.ts'

const run = promisify(execFile)
const browserFound = await findBrowser()
if ('missing' in browserFound) console.warn(`no test of stacks in a browser: missing ${browserFound.missing}`)

let stack: Stack
let root: string
let pages: FailingPages
let browser: TestBrowser | undefined

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'penstock-symbolication-'))
  ;[stack, pages] = await Promise.all([startStack(), serveFailingPages(root), writeReporters(root)])
  if (!('missing' in browserFound)) browser = await startBrowser(browserFound.path)
})

afterAll(async () => {
  await browser?.stop()
  await pages?.stop()
  await stack?.stop()
  await rm(root, { recursive: true, force: true })
})

const WHERE = { browser: failInBrowser, Node: failInNode } as const
const cases = (Object.keys(BUNDLERS) as Bundler[]).flatMap(bundler =>
  (Object.keys(WHERE) as (keyof typeof WHERE)[]).map(where => ({ bundler, where })),
)

describe('an app that is built by a bundler and fails for a user', () => {
  it.each(cases.filter(({ where }) => where === 'Node' || !('missing' in browserFound)))(
    'shows where its source has failed: $bundler, in $where; its next build falls into the same finding',
    async ({ bundler, where }) => {
      const service = `${bundler}-${where}`
      const scripts: string[] = []
      for (const [i, version] of ['1.0.0', '1.0.1'].entries()) {
        // A release is one build, with the maps of every environment that it runs in.
        const release = `${service}-${version}`
        const app = await build(bundler, where, version)
        await upload(release, app)
        const settings = { url: `${stack.ingestUrl}/drain/v1/traces`, publicKey: stack.secrets.publicKey }
        const sent = await WHERE[where](join(bundler, where, version, 'dist', app.script), {
          ...settings,
          service,
          version: release,
        })
        expect(sent).toContain(app.script)
        scripts.push(app.script)

        const { occurrenceCount, frames } = await until(`build ${version} of ${service} is resolved`, async () => {
          const finding = await findingOf(service)
          const isNewest = finding?.frames[0]?.generated.file.endsWith(app.script)
          return isNewest && finding?.frames[0]?.resolved ? finding : undefined
        })
        expect(occurrenceCount).toBe(i + 1)
        expectOriginal(frames)
      }
      // The file name contains a hash of the content.
      expect(scripts[0]).not.toBe(scripts[1])
    },
  )
})

/** File, line and function of the source; the map of webpack has the function only of the last part of a minified statement. */
function expectOriginal(frames: readonly FindingFrame[]): void {
  const own = frames.filter(frame => frame.resolved)
  expect(own.map(({ function: name, file }) => ({ function: name, file }))).toEqual(
    ORIGINAL_FRAMES.map(({ function: name, file }) => ({ function: name, file: `src/${file}` })),
  )
  expect(own.slice(0, 3).map(({ line }) => line)).toEqual(ORIGINAL_FRAMES.slice(0, 3).map(({ line }) => line))
  expect(own[0]?.sourceLine).toContain('throw new UnknownPriceError')
  expect(own[0]?.generated.function).not.toBe('lookUp')
}

async function build(bundler: Bundler, where: string, version: string): Promise<BuiltApp> {
  const directory = join(root, bundler, where, version)
  await mkdir(directory, { recursive: true })
  return buildApp(bundler, directory, version)
}

/** Registers the release, uploads the map and completes it, as a build does. */
async function upload(version: string, app: BuiltApp): Promise<void> {
  const { releaseSlug } = await ask<{ releaseSlug: string }>('POST', '/v3/releases', JSON.stringify({ version }))
  const path = `${app.script}.map`
  const maps = `/v3/releases/${releaseSlug}/source-maps`
  await ask('PUT', `${maps}/upload?path=${encodeURIComponent(path)}`, app.map)
  const entry = { path, hash: hash('sha256', app.map), debugId: '', chunkUrl: `~/${app.script}` }
  await ask('POST', `${maps}/complete`, JSON.stringify({ files: [entry], sourceFileCount: 3 }))
}

async function ask<T>(method: string, path: string, body: string | Buffer): Promise<T> {
  const answer = await fetch(stack.ingestUrl + path, {
    method,
    headers: { authorization: `Bearer ${stack.secrets.secretKey}`, 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : new Uint8Array(body),
    signal: AbortSignal.timeout(30_000),
  })
  const text = await answer.text()
  expect(`${method} ${path}: ${answer.status} ${answer.ok ? '' : text}`).toMatch(/: 20\d $/)
  return JSON.parse(text)
}

async function failInBrowser(script: string, settings: ReportSettings): Promise<string> {
  const page = await (browser as TestBrowser).context.newPage()
  try {
    await page.goto(pages.pageOf(script))
    await page.waitForFunction('globalThis.shop !== undefined')
    return await page.evaluate(`failAndReport(${JSON.stringify(settings)})`)
  } finally {
    await page.close()
  }
}

async function failInNode(script: string, settings: ReportSettings): Promise<string> {
  const args = [join(root, 'runner.mjs'), join(root, script), JSON.stringify(settings)]
  const { stdout } = await run(process.execPath, args, { timeout: 30_000 })
  return stdout
}

async function findingOf(service: string) {
  const { findings } = findingsPageSchema.parse(await read('/v3/findings'))
  const own = findings.filter(finding => finding.serviceName === service)
  expect(own.length).toBeLessThanOrEqual(1)
  if (own[0] === undefined) return undefined
  return findingAnswerSchema.parse(await read(`/v3/findings/${own[0].id}`)).finding
}

async function read(path: string): Promise<unknown> {
  const answer = await fetch(stack.apiUrl + path, {
    headers: { authorization: `Bearer ${stack.secrets.sessionToken}` },
    signal: AbortSignal.timeout(10_000),
  })
  expect(answer.status).toBe(200)
  return answer.json()
}
