import { readFileSync } from 'node:fs'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createHttpServer, type HttpServer } from '../../shared/http/server/server.ts'
import { createRunbookRoute } from './runbook-route.ts'

const logger = pino({ level: 'silent' })
const RULES = readFileSync(new URL('../../deploy/prometheus/penstock.rules.yml', import.meta.url), 'utf8')

let server: HttpServer
let base: string

beforeAll(async () => {
  server = createHttpServer({ routes: [createRunbookRoute()], logger, heldBodyLimitBytes: 1 })
  base = `http://127.0.0.1:${await server.listen('127.0.0.1', 0)}`
})
afterAll(() => server.close(1_000))

it('the link of every alert opens the runbook at its section', async () => {
  const links = [...RULES.matchAll(/runbook_url: (\S+)/g)].map(([, link = '']) => new URL(link))
  expect(links.length).toBeGreaterThan(25)
  const [path, ...others] = new Set(links.map(({ pathname }) => pathname))
  expect(others).toEqual([])
  const response = await fetch(base + path)
  expect(response.status).toBe(200)
  const page = await response.text()
  for (const { hash } of links) expect(page).toContain(`<a id="${hash.slice(1)}"></a>### Penstock`)
})

it('the page shows its text as it is, runs nothing, and links within itself', async () => {
  const response = await fetch(`${base}/console/runbook`)
  expect(response.headers.get('content-security-policy')).toContain("default-src 'none'")
  const page = await response.text()
  const body = page.slice(page.indexOf('<pre'), page.indexOf('</pre>'))
  const elements = new Set([...body.matchAll(/<(\w+)/g)].map(([, name]) => name))
  expect(elements).toEqual(new Set(['pre', 'a']))
  const anchors = new Set([...page.matchAll(/ id="(\w+)"/g)].map(([, id]) => `#${id}`))
  const links = [...page.matchAll(/ href="([^"]*)"/g)].map(([, href]) => href)
  expect(links.length).toBeGreaterThan(5)
  expect(links.filter(href => href === undefined || !anchors.has(href))).toEqual([])
})
