import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { createDatabase, putWorkspace, signToken, startApi, type TestApi } from '../../support/services/api.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { until } from '../../support/until.ts'
import { insertLogs, type StoredLog } from '../../support/workspaces/log-rows.ts'

const DATABASE = `cli_logs_${process.pid}`
const MAIN = fileURLToPath(new URL('../../../cli/main.ts', import.meta.url))
const RUN = randomBytes(5).toString('hex')
const WORKSPACE = { id: `ws_${RUN}`, slug: `cli-logs-${RUN}`, userId: `user_${RUN}` }

describe('penstock logs', () => {
  const services = sharedServices()
  let client: ClickHouseClient
  let api: TestApi
  let proxy: Server
  let url: string
  let token: string
  let isDown = false
  let refused = 0

  beforeAll(async () => {
    client = await createDatabase(services.clickhouseUrl, DATABASE)
    await putWorkspace(services.redisUrl, WORKSPACE)
    api = await startApi(services, DATABASE)
    token = await signToken({ org: WORKSPACE.slug, sub: WORKSPACE.userId })
    proxy = createServer(async (request, response) => {
      if (isDown) {
        refused++
        return response.writeHead(503).end()
      }
      const answer = await fetch(`${api.baseUrl}${request.url}`, {
        headers: { authorization: `${request.headers.authorization}` },
      })
      response.writeHead(answer.status).end(await answer.text())
    }).listen(0, '127.0.0.1')
    await once(proxy, 'listening')
    url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
  })

  afterAll(async () => {
    proxy?.close()
    await api?.stop()
    await client?.command({ query: `DROP DATABASE ${DATABASE}` })
    await client?.close()
  })

  const store = (logs: readonly StoredLog[]) =>
    insertLogs(
      client,
      logs.map(log => ({ workspaceId: WORKSPACE.id, ...log })),
    )

  function start(words: readonly string[]) {
    const child: ChildProcessWithoutNullStreams = spawn(process.execPath, [MAIN, 'logs', ...words], {
      cwd: tmpdir(),
      env: { PATH: process.env.PATH, LOCAL_DIR: `/nowhere-${RUN}`, PENSTOCK_TOKEN: token, PENSTOCK_URL: url },
    })
    const run = { child, stdout: '', stderr: '', ended: once(child, 'close') }
    child.stdout.on('data', data => {
      run.stdout += data
    })
    child.stderr.on('data', data => {
      run.stderr += data
    })
    return run
  }

  const bodies = (stdout: string) => stdout.split('\n').flatMap(line => (line === '' ? [] : JSON.parse(line).body))

  it('prints the newest, the oldest of them first, in a table or as JSON, with no control character of a client', async () => {
    const nowMs = Date.now()
    const at = (secondsAgo: number) => BigInt(nowMs - secondsAgo * 1_000) * 1_000_000n
    await store([
      { serviceName: 'table', timeUnixNano: at(3), severityNumber: 9, body: 'third' },
      { serviceName: 'table', timeUnixNano: at(2), severityNumber: 17, body: 'second\u001b[2J' },
      { serviceName: 'table', timeUnixNano: at(1), severityNumber: 17, body: 'first' },
    ])
    const table = start(['--service', 'table', '--severity', 'ERROR'])
    expect(await table.ended).toEqual([0, null])
    expect(table.stdout).toMatch(
      /^\S{30} {2}ERROR {2}table {13}second\\u\{1b\}\[2J\n\S{30} {2}ERROR {2}table {13}first\n$/,
    )
    const json = start(['--service', 'table', '--limit', '2', '--json'])
    await json.ended
    expect(bodies(json.stdout)).toEqual(['second\u001b[2J', 'first'])
  })

  it('follows those that arrive, each once, over an outage, until SIGINT', async () => {
    await store([{ serviceName: 'followed', body: 'old' }])
    const run = start(['--service', 'followed', '--follow', '--json'])
    await until('the tail is printed', async () => run.stdout.includes('old'))
    const late = { serviceName: 'followed', receivedAtMs: Date.now() - 20_000, body: 'late' }
    await store([late, late, { serviceName: 'other', body: 'other' }])
    await until('the late ones are printed', async () => bodies(run.stdout).length === 3)
    isDown = true
    await store([{ serviceName: 'followed', body: 'in the outage' }])
    await until('it was refused', async () => refused > 0)
    isDown = false
    await until('it continues', async () => bodies(run.stdout).length === 4)
    run.child.kill('SIGINT')
    expect(await run.ended).toEqual([0, null])
    expect(bodies(run.stdout)).toEqual(['old', 'late', 'late', 'in the outage'])
    expect(run.stderr).toBe('Error: the API answered 503: trying again in 5 s\n')
  })

  it('ends when the reader of its output leaves', async () => {
    await store([{ serviceName: 'piped', body: 'one' }])
    const run = start(['--service', 'piped', '-f'])
    await until('the tail is printed', async () => run.stdout.includes('one'))
    run.child.stdout.destroy()
    await store([{ serviceName: 'piped', body: 'two' }])
    const [code] = await run.ended
    expect({ code, stderr: run.stderr }).toEqual({ code: 1, stderr: '' })
  })

  it('says in one line what is wrong', async () => {
    const run = start(['--attribute', 'x', '--follow'])
    expect(await run.ended).toEqual([1, null])
    expect(run.stderr).toBe(
      'Error: the API answered 400: REQUEST_INVALID: attribute must be a key and a value with "=" between them\n',
    )
    const both = start(['--follow', '--to', '2026-11-21T10:00:00Z'])
    expect(await both.ended).toEqual([2, null])
  })
})
