// Opens each bundle in Chromium and in Firefox, and writes what their pages post as lines of JSON.
import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const DEADLINE_MS = 60_000
const BROWSERS = {
  chromium: profile => ['chromium', ['--headless', '--no-sandbox', '--disable-gpu', `--user-data-dir=${profile}`]],
  firefox: profile => ['firefox-esr', ['--headless', '--no-remote', '--profile', profile]],
}
const TYPES = { html: 'text/html', js: 'text/javascript', json: 'application/json', css: 'text/css' }

function serve(folder, recorded) {
  return createServer(async (request, response) => {
    if (request.method === 'POST') {
      const chunks = await Array.fromAsync(request)
      response.end()
      return recorded(JSON.parse(Buffer.concat(chunks).toString()))
    }
    const path = new URL(request.url, 'http://x').pathname.replace(/\/$/, '/index.html')
    try {
      const body = path === '/data.json' ? '{}' : readFileSync(join(folder, decodeURIComponent(path)))
      response.writeHead(200, { 'content-type': TYPES[path.split('.').at(-1)] ?? 'text/plain' }).end(body)
    } catch {
      response.writeHead(404).end()
    }
  })
}

async function open(bundler, browser) {
  const { promise, resolve, reject } = Promise.withResolvers()
  const server = serve(`out/${bundler}`, resolve).listen(0, '127.0.0.1')
  await new Promise(listening => server.once('listening', listening))
  const [command, args] = BROWSERS[browser](mkdtempSync(join(tmpdir(), 'shop-')))
  const url = `http://127.0.0.1:${server.address().port}/`
  const child = spawn(command, [...args, url], { detached: true, stdio: 'ignore' })
  const deadline = setTimeout(() => reject(new Error(`${browser} posted nothing of ${bundler}`)), DEADLINE_MS)
  try {
    for (const { scenario, ...exception } of await promise) {
      const line = { scenario: `${bundler}:${browser}:${scenario}`, ...exception }
      process.stdout.write(`${JSON.stringify(line)}\n`)
    }
  } finally {
    clearTimeout(deadline)
    process.kill(-child.pid, 'SIGKILL')
    server.close()
    server.closeAllConnections()
  }
}

for (const bundler of readdirSync('out')) for (const browser of Object.keys(BROWSERS)) await open(bundler, browser)
