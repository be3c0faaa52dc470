import { execFile } from 'node:child_process'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { freePort } from '../../../deploy/local/ports.ts'
import { answers, startChild, untilReady } from '../../../deploy/local/processes/child-process.ts'
import type { UploadReport } from '../../../packages/build/src/upload-report.ts'
import { MIB, MINUTE_MS } from '../../../schemas/units.ts'
import { packPackage } from '../pack-package.ts'
import { PRICING } from './write-app.ts'

/** How Next bundles. */
type NextBundler = 'webpack' | 'turbopack'

/** An application of Next in a folder of its own. It has the packages for browsers and for builds as npm installs them. */
export interface NextApp {
  /** Builds the application. Returns its output directory and the reports of uploads. */
  build(bundler: NextBundler): Promise<{ readonly directory: string; readonly reports: readonly UploadReport[] }>
  /** Starts what was built. */
  start(bundler: NextBundler): Promise<{ readonly origin: string; stop(): Promise<void> }>
}

/** Options of `writeNextApp`. */
interface NextAppOptions {
  readonly folder: string
  /** Text of a configuration of Next, which gets the upload added. */
  readonly configuration: string
  readonly url: string
  readonly publicKey: string
  readonly secretKey: string
}

const INSTALL_MS = 3 * MINUTE_MS
const BUILD_MS = 2 * MINUTE_MS
const PACKAGES = ['next@16.4.6', 'react@19.3.1', 'react-dom@19.3.1']
const UNREACHABLE = /\b(?:ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH)\b/

const run = promisify(execFile)

/** The service of the telemetry is named for the bundler. */
const PAGE = `'use client'
import { init } from '@penstock/browser'
import { useEffect } from 'react'
import { priceOf } from './pricing'

const penstock = init({
  url: '/telemetry',
  key: process.env.NEXT_PUBLIC_KEY,
  service: process.env.NEXT_PUBLIC_BUNDLER,
  recording: { sample: 1 },
})

export default function Page() {
  useEffect(() => {
    globalThis.penstock = penstock
  })
  return <button onClick={() => void priceOf('pen')}>Buy</button>
}
`

const LAYOUT = `export default function Layout({ children }) {
  return <html lang="en"><body>{children}</body></html>
}
`

/** A function of the server, so that its output has maps too. */
const ROUTE = `import { priceOf } from '../pricing'
export const dynamic = 'force-dynamic'
export const GET = async request => Response.json(await priceOf(new URL(request.url).searchParams.get('sku')))
`

const CONFIGURATION = `import { appendFileSync } from 'node:fs'
import withPenstock from '@penstock/build/next'
import config from './recipe.mjs'

const bundler = process.env.NEXT_PUBLIC_BUNDLER
const onReport = report => appendFileSync(\`\${bundler}.jsonl\`, \`\${JSON.stringify(report)}\\n\`)
export default withPenstock({ ...config, distDir: bundler }, { version: bundler, onReport })
`

/** Writes and installs the application. Returns the reason if the registry of npm cannot be reached. */
export async function writeNextApp(options: NextAppOptions): Promise<NextApp | { readonly missing: string }> {
  const { folder } = options
  const missing = await install(folder)
  if (missing !== undefined) return { missing }
  await mkdir(join(folder, 'app/price'), { recursive: true })
  const files = {
    'app/page.js': PAGE,
    'app/layout.js': LAYOUT,
    'app/pricing.js': PRICING,
    'app/price/route.js': ROUTE,
    'recipe.mjs': options.configuration,
    'next.config.mjs': CONFIGURATION,
  }
  for (const [path, text] of Object.entries(files)) await writeFile(join(folder, path), text)
  const command = join(folder, 'node_modules/next/dist/bin/next')
  const envOf = (bundler: NextBundler) => ({
    PATH: process.env.PATH,
    HOME: process.env.HOME,
    NEXT_TELEMETRY_DISABLED: '1',
    NEXT_PUBLIC_BUNDLER: bundler,
    NEXT_PUBLIC_KEY: options.publicKey,
    PENSTOCK_URL: options.url,
    PENSTOCK_SECRET_KEY: options.secretKey,
  })
  return {
    async build(bundler) {
      const reports = join(folder, `${bundler}.jsonl`)
      await rm(reports, { force: true })
      const env = envOf(bundler) as NodeJS.ProcessEnv
      const limits = { timeout: BUILD_MS, maxBuffer: 16 * MIB }
      await run(process.execPath, [command, 'build', `--${bundler}`], { cwd: folder, env, ...limits })
      const lines = (await readFile(reports, 'utf8')).trim().split('\n')
      return { directory: join(folder, bundler), reports: lines.map(line => JSON.parse(line)) }
    },
    async start(bundler) {
      const port = await freePort()
      const args = [command, 'start', '--hostname', '127.0.0.1', '--port', String(port)]
      const env = envOf(bundler)
      const child = await startChild({ command: process.execPath, args, cwd: folder, env, log: () => {} })
      await untilReady('Next', child, () => answers(`http://127.0.0.1:${port}/`, [200]), {})
      return { origin: `http://localhost:${port}`, stop: () => child.stop() }
    },
  }
}

/** Installs Next and both packages. Returns the reason if the registry cannot be reached. */
async function install(folder: string): Promise<string | undefined> {
  const own = await Promise.all(['browser', 'build'].map(name => packPackage(name, folder)))
  await writeFile(join(folder, 'package.json'), '{"name":"shop","private":true}')
  const quiet = ['--prefer-offline', '--no-audit', '--no-fund']
  try {
    await run('npm', ['install', ...quiet, ...PACKAGES, ...own], { cwd: folder, timeout: INSTALL_MS })
    return undefined
  } catch (error) {
    const [code] = UNREACHABLE.exec(String((error as { stderr?: string }).stderr)) ?? []
    if (code === undefined) throw error
    return `npm cannot install next (${code})`
  }
}
