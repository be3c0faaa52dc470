import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createHttpServer, type HttpServer } from '../../shared/http/server/server.ts'
import { createConsoleRoutes } from './console-routes.ts'

const settings = {
  CONSOLE_ISSUER: 'https://login.example/tenant?a="<&',
  CONSOLE_CLIENT_ID: 'console',
  CONSOLE_SCOPE: 'openid',
  PUBLIC_URL: 'https://ingest.example',
}
const logger = pino({ level: 'silent' })
const DOCUMENT =
  '<!doctype html><meta name="penstock-sign-in" content="%SIGN_IN%"><meta name="penstock-public-url" content=\'%PUBLIC_URL%\'>'
const SCRIPT = 'console.log(1)'
const PLAYER = '<!doctype html><title>Recording</title>'

describe('the routes of the console', () => {
  let directory: string
  let server: HttpServer
  let port: number

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'penstock-console-'))
    mkdirSync(join(directory, 'assets'))
    writeFileSync(join(directory, 'index.html'), DOCUMENT)
    writeFileSync(join(directory, 'player.html'), PLAYER)
    writeFileSync(join(directory, 'sources.sha256'), 'secret')
    writeFileSync(join(directory, 'assets/stage-abc.js'), SCRIPT)
    writeFileSync(join(directory, 'assets/stage-abc.js.gz'), gzipSync(SCRIPT))
    writeFileSync(join(directory, 'assets/main-abc.js'), SCRIPT)
    writeFileSync(join(directory, 'assets/main-abc.js.gz'), gzipSync(SCRIPT))
    server = createHttpServer({
      routes: createConsoleRoutes(settings, logger, directory),
      logger,
      heldBodyLimitBytes: 1,
    })
    port = await server.listen('127.0.0.1', 0)
  })
  afterAll(async () => {
    await server.close(1_000)
    rmSync(directory, { recursive: true })
  })

  it('serve the document under every path of the console, with the settings of the sign-in and the address of the edge', async () => {
    for (const path of ['/console/', '/console/findings/fnd_1', '/console/traces/a%2Fb?span=c']) {
      const { status, text } = await ask(path)
      expect(status).toBe(200)
      const [, content = ''] = /content="([^"]*)"/.exec(text) ?? []
      expect(text).toContain("content='https://ingest.example'")
      expect(content).not.toMatch(/[<"]/)
      const unescaped = content.replaceAll('&quot;', '"').replaceAll('&lt;', '<').replaceAll('&amp;', '&')
      expect(JSON.parse(unescaped)).toEqual({ issuer: settings.CONSOLE_ISSUER, clientId: 'console', scope: 'openid' })
    }
    for (const [path, expected] of [
      ['/console', 308],
      ['/', 302],
    ] as const) {
      for (const method of ['GET', 'HEAD']) {
        const { status, headers } = await ask(path, {}, method)
        expect([status, headers.location]).toEqual([expected, '/console/'])
      }
    }
  })

  it('let the document run scripts of its origin only, and send requests to its origin and the issuer only', async () => {
    const { headers } = await ask('/console/')
    const policy = new Map(
      String(headers['content-security-policy'])
        .split('; ')
        .map(rule => rule.split(/ (.*)/) as [string, string]),
    )
    expect(policy.get('default-src')).toBe("'none'")
    expect(policy.get('script-src')).toBe("'self'")
    expect(policy.get('style-src')).toBe("'self'")
    expect(policy.get('connect-src')).toBe("'self' https://login.example")
    expect(policy.get('frame-ancestors')).toBe("'none'")
    expect(policy.get('frame-src')).toBe("'self'")
    expect(policy.get('base-uri')).toBe("'none'")
    expect(policy.get('require-trusted-types-for')).toBe("'script'")
    expect(headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-cache',
    })
  })

  it('serve a document for recordings, which loads nothing but the script of the player', async () => {
    const { headers, text } = await ask('/console/player')
    expect(text).toBe(PLAYER)
    const rules = new Map(
      String(headers['content-security-policy'])
        .split('; ')
        .map(rule => rule.split(/ (.*)/) as [string, string]),
    )
    expect(Object.fromEntries(rules)).toEqual({
      'default-src': "'none'",
      'script-src': "'self'",
      'style-src': "'unsafe-inline'",
      'img-src': 'data: blob:',
      'font-src': 'data:',
      'media-src': 'data: blob:',
      'frame-src': 'data:',
      'form-action': "'none'",
      'base-uri': "'none'",
      'frame-ancestors': "'self'",
      sandbox: 'allow-scripts allow-same-origin',
    })
    expect(headers).toMatchObject({ 'x-dns-prefetch-control': 'off', 'referrer-policy': 'no-referrer' })
    const policyOf = async (name: string) =>
      (await ask(`/console/assets/${name}`)).headers['cross-origin-resource-policy']
    expect([await policyOf('stage-abc.js'), await policyOf('main-abc.js')]).toEqual(['cross-origin', 'same-origin'])
  })

  it('send the document again only when it has changed', async () => {
    const { headers } = await ask('/console/')
    const etag = String(headers.etag)
    expect(await ask('/console/traces', { 'if-none-match': `W/${etag}` })).toMatchObject({ status: 304, text: '' })
    expect(await ask('/console/traces', { 'if-none-match': '"other"' })).toMatchObject({ status: 200 })
  })

  it('serve assets for a year, compressed where the browser reads that', async () => {
    const plain = await ask('/console/assets/main-abc.js')
    expect(plain.text).toBe(SCRIPT)
    expect(plain.headers).toMatchObject({
      'cache-control': 'public, max-age=31536000, immutable',
      'content-type': 'text/javascript; charset=utf-8',
      'x-content-type-options': 'nosniff',
      vary: 'accept-encoding',
    })
    for (const path of ['/console/assets/main-abc.js', '/console/']) {
      const packed = await ask(path, { 'accept-encoding': 'br, gzip' })
      expect(packed.headers['content-encoding']).toBe('gzip')
      expect(gunzipSync(packed.bytes).toString()).toBe((await ask(path)).text)
    }
  })

  it('reach no other file', async () => {
    for (const path of [
      'main-abc.js.gz',
      'absent.js',
      '..%2fsources.sha256',
      '../sources.sha256',
      '%2e%2e/sources.sha256',
    ]) {
      const { text } = await ask(`/console/assets/${path}`)
      expect(text).not.toContain('secret')
      expect(text).not.toContain(SCRIPT)
    }
    expect((await ask('/console/assets/absent.js')).status).toBe(404)
  })

  it('are none without an issuer, and none before the console is built', () => {
    expect(createConsoleRoutes({ ...settings, CONSOLE_ISSUER: undefined }, logger, directory)).toEqual([])
    expect(createConsoleRoutes(settings, logger, join(directory, 'absent'))).toEqual([])
  })

  /** Sends a path as it is: `fetch` would resolve its dots. */
  function ask(path: string, headers: Record<string, string> = {}, method = 'GET') {
    return new Promise<{ status: number; headers: Record<string, unknown>; text: string; bytes: Buffer }>(
      (resolve, reject) => {
        request({ host: '127.0.0.1', port, path, headers, method }, response => {
          const chunks: Buffer[] = []
          response.on('data', chunk => chunks.push(chunk))
          response.on('end', () => {
            const bytes = Buffer.concat(chunks)
            resolve({ status: response.statusCode ?? 0, headers: response.headers, text: bytes.toString(), bytes })
          })
        })
          .on('error', reject)
          .end()
      },
    )
  }
})
