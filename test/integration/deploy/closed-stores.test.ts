import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { GetObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3'
import { createClient } from '@clickhouse/client'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { SERVER_PASSWORD, type Services, startServices } from '../../support/services/services.ts'

/**
 * Sends to the servers of `npm start` what a page or another user of this machine can send. A page may send a POST with a
 * text body to every address, without a question to the server before.
 */
describe('the servers that npm start runs are closed to pages and other users', () => {
  let services: Services
  let elsewhere: string
  beforeAll(async () => {
    elsewhere = await mkdtemp(join(tmpdir(), 'penstock-elsewhere-'))
    services = await startServices()
  })
  afterAll(async () => {
    await services?.stop()
    await rm(elsewhere, { recursive: true, force: true })
  })

  const post = (url: string | URL, body: string, headers: Record<string, string> = {}) =>
    fetch(url, {
      method: 'POST',
      body,
      headers: { 'content-type': 'text/plain', origin: 'https://page.test', ...headers },
    })

  it('ClickHouse runs no query of a page, whatever user it names', async () => {
    const { port } = new URL(services.clickhouseUrl)
    const file = join(elsewhere, 'written')
    const query = `INSERT INTO FUNCTION file('${file}', 'LineAsString', 'l String') VALUES ('text')`
    const url = `http://127.0.0.1:${port}/`
    const basic = (user: string, password: string) => ({
      authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
    })
    const attempts = [
      () => post(url, query),
      () => post(`${url}?query=${encodeURIComponent(query)}`, ''),
      () => post(`${url}?user=default`, query),
      () => post(`${url}?user=default&password=`, query),
      () => post(`${url}?user=penstock&password=`, query),
      () => post(url, query, basic('default', '')),
      () => post(url, query, basic('penstock', 'wrong')),
      () => post(`${url}?max_sessions_for_user=0`, query),
      () => post(url, query, { 'x-forwarded-for': '127.0.0.2' }),
    ]
    for (const attempt of attempts) {
      const response = await attempt()
      expect(await response.text()).toMatch(/AUTHENTICATION_FAILED|USER_SESSION_LIMIT_EXCEEDED/)
      expect(response.ok).toBe(false)
    }
    expect(existsSync(file)).toBe(false)
    const client = createClient({ url: services.clickhouseUrl })
    await client.command({ query })
    expect(readFileSync(file, 'utf8')).toBe('text\n')
    await client.close()
  })

  it('Redis runs no command of a page or of a plain connection', async () => {
    const { port } = new URL(services.redisUrl)
    await post(`http://127.0.0.1:${port}/`, 'SET from-page 1\r\n').then(
      response => expect(response.ok).toBe(false),
      () => {},
    )
    expect(await say(Number(port), 'SET from-socket 1\r\n')).toMatch(/^-NOAUTH/)
    const redis = new Redis(services.redisUrl)
    expect(await redis.exists('from-page', 'from-socket')).toBe(0)
    await redis.quit()
  })

  it('S3 reads and writes no object without a signature, at any path', async () => {
    const { bucket, endpoint } = services.s3
    const s3 = new S3Client({ ...services.s3, forcePathStyle: true, credentials: services.s3 })
    await s3.send(new PutObjectCommand({ Bucket: bucket, Key: 'replays/a', Body: 'private' }))
    const publicPath = new URL('/cdn-cgi/local/r2/public', endpoint).href
    for (const path of [endpoint, publicPath]) {
      const url = `${path}/${bucket}/replays/a`
      for (const method of ['GET', 'PUT', 'POST', 'DELETE']) {
        const response = await fetch(url, { method, ...(method.startsWith('P') && { body: 'changed' }) })
        // The server answers "ok" at the paths that are not S3's.
        expect(await response.text(), `${method} ${url}`).not.toContain('private')
        if (path === endpoint) expect([400, 403]).toContain(response.status)
      }
    }
    const kept = await s3.send(new GetObjectCommand({ Bucket: bucket, Key: 'replays/a' }))
    expect(await kept.Body?.transformToString()).toBe('private')
    s3.destroy()
  })

  it.runIf(process.platform === 'linux')('no other port of the S3 server writes a file', async () => {
    const ports = processTree(services.s3Server.pid).flatMap(listeningPorts)
    expect(ports).toContain(Number(new URL(services.s3.endpoint).port))
    const target = encodeURIComponent(`../../../../../..${elsewhere}/from-page`)
    for (const port of ports) {
      await post(`http://127.0.0.1:${port}/core/store-temp-file?prefix=${target}&extension=txt`, 'text').catch(() => {})
    }
    expect(readdirSync(elsewhere)).not.toContain('from-page')
  })

  it.runIf(process.platform === 'linux')('no argument of a process contains a password', () => {
    const pids = [services.redis, services.clickhouse, services.s3Server].flatMap(({ pid }) => processTree(pid))
    for (const pid of pids) {
      const args = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
      for (const secret of [SERVER_PASSWORD, services.s3.secretAccessKey]) expect(args).not.toContain(secret)
    }
  })

  it('only this user can read the files with passwords', async () => {
    for (const file of ['redis/redis.conf', 'clickhouse/config.xml', 'clickhouse/users.xml']) {
      expect((await stat(join(services.dir, file))).mode & 0o777, file).toBe(0o600)
    }
  })
})

/** Sends a text over a plain connection and returns the first data of the response. */
function say(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1' }, () => socket.write(text))
    socket.once('error', reject)
    socket.once('data', data => {
      socket.destroy()
      resolve(data.toString())
    })
  })
}

/** Returns a process with its descendants. */
function processTree(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
  return [pid, ...children.flatMap(processTree)]
}

/** Returns the TCP ports that a process listens on. */
function listeningPorts(pid: number): number[] {
  const sockets = new Set(
    readdirSync(`/proc/${pid}/fd`).map(fd => {
      try {
        return readlinkSync(`/proc/${pid}/fd/${fd}`)
      } catch {
        return undefined
      }
    }),
  )
  const lines = ['tcp', 'tcp6'].flatMap(table => readFileSync(`/proc/net/${table}`, 'utf8').split('\n').slice(1))
  return lines.flatMap(line => {
    const [, local = '', , state, , , , , , inode] = line.trim().split(/\s+/)
    const isListening = state === '0A' && sockets.has(`socket:[${inode}]`)
    return isListening ? [Number.parseInt(local.split(':')[1] ?? '', 16)] : []
  })
}
