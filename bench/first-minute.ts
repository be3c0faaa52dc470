import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { findBrowser, startBrowser, type TestBrowser } from '../test/support/pages/browser.ts'
import { freePorts } from '../test/support/services/local-start.ts'
import { textTable } from './report/table.ts'

/**
 * Takes the time from a clone to the first finding with source lines in the console: `npm start`, `npm run demo`, Chromium.
 * `node bench/first-minute.ts` has the cache of npm as it is; with `--cold` it begins with an empty one, and then takes the time of
 * another clone, so that the difference is that of the downloads.
 */
const { values } = parseArgs({ options: { cold: { type: 'boolean', default: false } } })
const ROOT = fileURLToPath(new URL('..', import.meta.url))
const READY_MS = 600_000
const SEEN_MS = 120_000
/** A line of the source that the finding shows. */
const SOURCE_LINE = 'cents += line.quantity * line.price.cents'

const found = await findBrowser()
if ('missing' in found) throw new Error(`missing ${found.missing}`)
const dir = mkdtempSync(join(tmpdir(), 'penstock-first-minute-'))
try {
  const cache = values.cold ? { npm_config_cache: join(dir, 'npm') } : {}
  const browser = await startBrowser(found.path)
  if (values.cold) print('with an empty cache of npm', await takeTimes('cold', cache, browser))
  print('with a warm cache', await takeTimes('warm', cache, browser))
  await browser.stop()
} finally {
  rmSync(dir, { recursive: true, force: true })
}

type Moments = [name: string, atMs: number][]

/** Clones, starts, sends the demo and opens its finding. Returns when each step was done. */
async function takeTimes(name: string, cache: Record<string, string>, browser: TestBrowser): Promise<Moments> {
  const clone = join(dir, name)
  execFileSync('git', ['clone', '--quiet', ROOT, clone])
  const env = { ...process.env, ...cache, ...(await freePorts()), LOCAL_DIR: join(clone, '.local') }
  const moments: Moments = [['npm start', Date.now()]]
  const mark = (step: string) => moments.push([step, Date.now()])
  const start = spawn('npm', ['start'], { cwd: clone, env, stdio: ['ignore', 'pipe', 'inherit'], detached: true })
  const ended = new Promise<void>(resolve => start.once('close', () => resolve()))
  createInterface({ input: start.stdout }).on('line', () => {
    if (moments.length === 1 && existsSync(join(clone, 'node_modules/.package-lock.json')))
      mark('dependencies installed')
  })
  try {
    // The file exists only when everything is ready.
    await waitFor('npm start', READY_MS, () => existsSync(join(clone, '.local/credentials.json')))
    mark('ready')
    const link = execFileSync('npm', ['run', '--silent', 'console:link'], { cwd: clone, env, encoding: 'utf8' }).trim()
    const page = await browser.context.newPage()
    await page.goto(link)
    mark('signed in to the console')
    const demo = runDemo(clone, env, mark)
    await page.goto(await Promise.race([demo.finding, demo.ended.then(neverLinked)]))
    await page.getByText(SOURCE_LINE).waitFor({ timeout: SEEN_MS })
    mark('source lines seen')
    await page.close()
    await demo.ended
    mark('history stored')
    return moments
  } finally {
    // Like Ctrl-C, to npm and to everything that it runs.
    if (start.pid !== undefined) process.kill(-start.pid, 'SIGINT')
    await ended
  }
}

/** Runs the demo. Marks its steps, and resolves with the link to its finding, and when it has ended well. */
function runDemo(clone: string, env: NodeJS.ProcessEnv, mark: (step: string) => void) {
  const demo = spawn('npm', ['run', '--silent', 'demo'], { cwd: clone, env, stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = new Promise<void>((resolve, reject) => {
    demo.once('close', code => (code === 0 ? resolve() : reject(new Error(`npm run demo has ended with ${code}`))))
  })
  createInterface({ input: demo.stderr }).on('line', line => mark(`demo: ${line}`))
  const finding = new Promise<string>(resolve => {
    createInterface({ input: demo.stdout }).on('line', line => {
      const link = /http\S+\/console\/findings\/\S+/.exec(line)?.[0]
      if (link === undefined) return
      mark('demo: links')
      resolve(link)
    })
  })
  return { finding, ended }
}

function neverLinked(): never {
  throw new Error('npm run demo has printed no link')
}

async function waitFor(what: string, deadlineMs: number, condition: () => boolean): Promise<void> {
  const deadline = Date.now() + deadlineMs
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`${what} took longer than ${deadlineMs / 1_000} s`)
    await delay(20)
  }
}

function print(title: string, moments: Moments): void {
  const readyMs = moments.find(([name]) => name === 'ready')?.[1] ?? 0
  const seconds = (ms: number) => (ms / 1_000).toFixed(1)
  const rows = moments
    .slice(1)
    .map(([name, atMs], i) => [name, seconds(atMs - (moments[i]?.[1] ?? 0)), seconds(atMs - readyMs)])
  console.log(textTable({ head: [title, 'step (s)', 'after ready (s)'], rows }).join('\n'))
}
