import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import {
  createDatabase,
  insertExceptions,
  insertSpans,
  putWorkspace,
  signToken,
  startApi,
  type TestApi,
} from '../../support/services/api.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

const DATABASE = `cli_reads_${process.pid}`
const MAIN = fileURLToPath(new URL('../../../cli/main.ts', import.meta.url))
const RUN = randomBytes(5).toString('hex')
const WORKSPACE = { id: `ws_${RUN}`, slug: `cli-${RUN}`, userId: `user_${RUN}` }
const TRACE = randomBytes(16).toString('hex')

interface Run {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

describe('penstock trace, findings and pipeline', () => {
  const services = sharedServices()
  let client: ClickHouseClient
  let api: TestApi
  let token: string

  beforeAll(async () => {
    client = await createDatabase(services.clickhouseUrl, DATABASE)
    await putWorkspace(services.redisUrl, WORKSPACE)
    api = await startApi(services, DATABASE)
    token = await signToken({ org: WORKSPACE.slug, sub: WORKSPACE.userId })
    const start = BigInt(Date.now() - 60_000) * 1_000_000n
    const span = (number: number, parent: number, offsetMs: number, lengthMs: number, more: object = {}) => ({
      ...{ workspaceId: WORKSPACE.id, traceId: TRACE, spanId: id(number) },
      ...(parent > 0 && { parentSpanId: id(parent) }),
      startTimeUnixNano: start + BigInt(offsetMs) * 1_000_000n,
      endTimeUnixNano: start + BigInt(offsetMs + lengthMs) * 1_000_000n,
      receivedAt: Date.now() - 50_000,
      ...more,
    })
    await insertSpans(client, [
      span(1, 0, 0, 100, { serviceName: 'web', name: 'GET /cart' }),
      span(2, 1, 10, 80, { serviceName: 'api', name: 'load\u001b[2J', statusCode: 2 }),
      span(3, 2, 20, 5, { serviceName: 'db', name: 'select' }),
      span(4, 1, 95, 1, { serviceName: 'web', name: 'render' }),
      span(5, 9, 96, 1, { serviceName: 'web', name: 'orphan' }),
    ])
    const owner = { workspaceId: WORKSPACE.id, findingId: `fnd_${'a'.repeat(26)}`, traceId: TRACE }
    await insertExceptions(client, [{ ...owner, type: 'CartError', message: 'the cart\nis empty', serviceName: 'api' }])
  })

  afterAll(async () => {
    await api?.stop()
    await client?.command({ query: `DROP DATABASE ${DATABASE}` })
    await client?.close()
  })

  function run(words: readonly string[], env: Record<string, string> = { PENSTOCK_TOKEN: token }): Promise<Run> {
    return new Promise(resolve => {
      execFile(
        process.execPath,
        [MAIN, ...words],
        { cwd: tmpdir(), env: { PATH: process.env.PATH, LOCAL_DIR: `/nowhere-${RUN}`, ...env } },
        (error, stdout, stderr) => resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
      )
    })
  }

  it('draws a trace as a tree, with what it lacks, and no control character of a client', async () => {
    const { code, stdout, stderr } = await run(['trace', TRACE, '--url', api.baseUrl])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout.split('\n')).toEqual([
      `trace ${TRACE}: 5 spans of 3 services in 100 ms`,
      'incomplete: unknown, 1 missing parent',
      '    0.000 ms  100.000 ms  web  GET /cart',
      '   10.000 ms   80.000 ms  api    load\\u{1b}[2J  ERROR',
      '   20.000 ms    5.000 ms  db       select',
      '   95.000 ms    1.000 ms  web    render',
      '   96.000 ms    1.000 ms  web  orphan  (its parent is missing)',
      '',
    ])
    const short = await run(['trace', TRACE.toUpperCase(), '--spans', '2'], {
      PENSTOCK_TOKEN: token,
      PENSTOCK_URL: api.baseUrl,
    })
    expect(short.stdout).toContain('\n… and 3 more spans\n')
    const json = await run(['trace', TRACE, '--json', '--url', api.baseUrl])
    expect(JSON.parse(json.stdout)).toMatchObject({ traceId: TRACE, spanCount: 5 })
  })

  it('lists findings in a table or as JSON', async () => {
    const table = await run(['findings', '--url', api.baseUrl])
    expect(table.code).toBe(0)
    expect(table.stdout).toMatch(
      /^FINDING +LAST SEEN +STATUS +COUNT +SERVICE +WHAT\nfnd_a{26} .* open +1 +api +CartError: the cart\n$/,
    )
    const [head = '', row = ''] = table.stdout.split('\n')
    expect(head.indexOf('COUNT')).toBe(row.search(/1 +api/))
    const none = await run(['findings', '--url', api.baseUrl, '--status', 'resolved', '--json'])
    expect(none).toEqual({ code: 0, stdout: '', stderr: '' })
    const filters = ['--service', 'api', '--text', 'is empty', '--status', 'open']
    const json = await run(['findings', '--url', api.baseUrl, ...filters, '--json'])
    expect(JSON.parse(json.stdout)).toMatchObject({ type: 'CartError', occurrenceCount: 1 })
  })

  it('merges findings and splits them again', async () => {
    const [first, second] = ['b', 'c'].map(letter => `fnd_${letter.repeat(26)}`) as [string, string]
    const start = BigInt(Date.now() - 60_000) * 1_000_000n
    const owner = { workspaceId: WORKSPACE.id, traceId: TRACE, serviceName: 'merged' }
    await insertExceptions(client, [
      { ...owner, findingId: first, occurredAtUnixNano: start },
      { ...owner, findingId: second, occurredAtUnixNano: start + 1n },
    ])
    const at = ['--url', api.baseUrl]
    const merged = await run(['findings', 'merge', second, first, ...at])
    expect(merged).toEqual({ code: 0, stdout: `${first} has 2 occurrences\n`, stderr: '' })
    const split = await run(['findings', 'split', first, second, ...at, '--json'])
    expect(JSON.parse(split.stdout)).toMatchObject({ id: second, occurrenceCount: 1, splitFrom: first })
  })

  it('reads, tries and replaces the rules of grouping', async () => {
    const at = ['--url', api.baseUrl]
    const directory = await mkdtemp(join(tmpdir(), 'penstock-rules-'))
    const file = join(directory, 'rules.json')
    const rule = { name: 'carts', type: 'Cart*', fingerprint: 'cart' }
    const shown = await run(['findings', 'rules', 'show', ...at, '--json'])
    expect(JSON.parse(shown.stdout)).toEqual({ revision: 0, rules: [] })
    await writeFile(file, JSON.stringify({ ...JSON.parse(shown.stdout), rules: [rule] }))
    const tried = await run(['findings', 'rules', 'try', file, ...at])
    expect(tried.stdout).toMatch(
      /^3 of 3 stacks would move: .*\ncarts decides on 1 stack\n(.*\n)* {2}fnd_a{26} to fnd_/,
    )
    const replaced = await run(['findings', 'rules', 'replace', file, ...at])
    expect(replaced).toMatchObject({ code: 0, stdout: expect.stringMatching(/^1 rule, revision \d+: /) })
    const table = await run(['findings', 'rules', 'show', ...at])
    expect(table.stdout).toMatch(/\ncarts +type is Cart\* +fingerprint cart\n/)
    await writeFile(file, JSON.stringify({ ...JSON.parse(shown.stdout), rules: [{ ...rule, name: 'stale' }] }))
    const stale = await run(['findings', 'rules', 'replace', file, ...at])
    expect(stale).toMatchObject({ code: 10, stderr: expect.stringMatching(/no longer those of revision 0/) })
    await writeFile(file, '[]')
    const faulty = await run(['findings', 'rules', 'try', file, ...at])
    expect(faulty).toMatchObject({ code: 1, stderr: expect.stringContaining('must be JSON with a list "rules"') })
    await rm(directory, { recursive: true })
  })

  it('reads, tries and replaces the rules of scrubbing', async () => {
    const at = ['--url', api.baseUrl]
    const directory = await mkdtemp(join(tmpdir(), 'penstock-scrubbing-'))
    const file = join(directory, 'scrubbing.json')
    const shown = await run(['scrubbing', 'show', ...at, '--json'])
    expect(JSON.parse(shown.stdout)).toMatchObject({ revision: 0, rules: [{ name: 'credentials', action: 'mask' }] })
    const rule = { name: 'people', keys: ['iban'], action: 'remove' }
    await writeFile(file, JSON.stringify({ revision: 0, rules: [rule] }))
    const tried = await run(['scrubbing', 'try', file, 'customer.iban=DE1', 'password=a=b', ...at])
    expect(tried).toEqual({ code: 0, stdout: 'customer.iban=\npassword=a=b\npeople replaces 1 value\n', stderr: '' })
    const replaced = await run(['scrubbing', 'replace', file, ...at])
    expect(replaced).toMatchObject({ code: 0, stdout: expect.stringMatching(/^1 rule, revision \d+: /) })
    expect((await run(['scrubbing', 'show', ...at])).stdout).toMatch(/\npeople +remove +iban\n/)
    await writeFile(file, JSON.stringify({ revision: 0, rules: [] }))
    expect(await run(['scrubbing', 'replace', file, ...at])).toMatchObject({ code: 10 })
    await rm(directory, { recursive: true })
  })

  it('reads and replaces the rules of dropping', async () => {
    const at = ['--url', api.baseUrl]
    const directory = await mkdtemp(join(tmpdir(), 'penstock-dropping-'))
    const file = join(directory, 'dropping.json')
    const shown = await run(['dropping', 'show', ...at, '--json'])
    expect(JSON.parse(shown.stdout)).toEqual({ revision: 0, rules: [] })
    const attributes = [{ key: 'level', value: 'debug' }, { key: 'tenant' }]
    const rules = [{ name: 'debug', signals: ['logs', 'traces'], services: ['shop'], attributes, keep: 0.1 }]
    await writeFile(file, JSON.stringify({ revision: 0, rules }))
    const replaced = await run(['dropping', 'replace', file, ...at])
    expect(replaced).toMatchObject({ code: 0, stdout: expect.stringMatching(/^1 rule, revision \d+: /) })
    const { stdout } = await run(['dropping', 'show', ...at])
    expect(stdout).toMatch(/\ndebug +0\.1 +logs or traces; shop; level=debug and tenant\n/)
    await writeFile(file, JSON.stringify({ revision: 0, rules: [] }))
    expect(await run(['dropping', 'replace', file, ...at])).toMatchObject({ code: 10 })
    const current = JSON.parse((await run(['dropping', 'show', ...at, '--json'])).stdout)
    await writeFile(file, JSON.stringify({ ...current, rules: [] }))
    expect(await run(['dropping', 'replace', file, ...at])).toMatchObject({ code: 0 })
    await rm(directory, { recursive: true })
  })

  it('reads, replaces and tests the receivers of alerts, and shows what was sent', async () => {
    const at = ['--url', api.baseUrl]
    const directory = await mkdtemp(join(tmpdir(), 'penstock-alerts-'))
    const file = join(directory, 'alerts.json')
    expect((await run(['alerts', 'show', ...at])).stdout).toMatch(
      /\nNew and returning findings +all +finding.created or [\s\S]*\nno receiver: nothing is sent\n$/,
    )
    const receivers = [
      { name: 'hook', channel: 'webhook', url: 'https://127.0.0.1/hook?token=hidden' },
      { name: 'mail', channel: 'email', to: ['on-call@shop.example'] },
    ]
    const rules = [{ name: 'errors', kinds: ['finding.created'], receivers: ['hook'], services: ['shop', 'cart'] }]
    await writeFile(file, JSON.stringify({ revision: 0, receivers, rules }))
    const replaced = await run(['alerts', 'replace', file, ...at])
    expect(replaced).toMatchObject({ code: 0, stdout: expect.stringMatching(/\nsecret of hook, .*: whsec_\S+\n$/) })
    const shown = await run(['alerts', 'show', ...at])
    expect(shown.stdout).toMatch(/\nerrors +hook +finding.created; shop or cart\n/)
    expect(shown.stdout).toMatch(
      /\nreceiver hook: webhook, https:\/\/127.0.0.1\/hook\nreceiver mail: email, on-call@shop.example\n$/,
    )
    // A file as it was shown keeps the targets.
    await writeFile(file, (await run(['alerts', 'show', ...at, '--json'])).stdout)
    expect(await run(['alerts', 'replace', file, ...at])).toMatchObject({ code: 0 })
    expect(await run(['alerts', 'test', 'hook', ...at])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/refused, the receiver is refused: its address is not public/),
    })
    expect((await run(['alerts', 'deliveries', ...at])).stdout).toMatch(/^AT +RECEIVER/)
    await rm(directory, { recursive: true })
  })

  it('shows a finding with its occurrences, as text or as JSON', async () => {
    const id = `fnd_${'a'.repeat(26)}`
    const shown = await run(['finding', id, '--url', api.baseUrl])
    expect({ code: shown.code, stderr: shown.stderr }).toEqual({ code: 0, stderr: '' })
    expect(shown.stdout).toMatch(/^CartError: the cart\nopen, 1 occurrence in api\nfirst occurred /)
    expect(shown.stdout).toContain('\n0 people, 0 sessions, 0 of them anonymous\n')
    expect(shown.stdout).toMatch(new RegExp(`\nlast 1 occurrence:\n  20.* trace ${TRACE} {2}the cart\n$`))
    const json = await run(['finding', id, '--json', '--url', api.baseUrl])
    expect(JSON.parse(json.stdout)).toMatchObject({ finding: { id }, values: { examinedCount: 1 }, occurrences: [{}] })
    const none = await run(['finding', `fnd_${'d'.repeat(26)}`, '--url', api.baseUrl])
    expect(none).toMatchObject({ code: 3, stdout: '' })
  })

  it('shows what waits and what was refused, in a table or as JSON', async () => {
    await client.command({
      query: `INSERT INTO ingest_log (workspace_id, surface_id, received_at, signal, payloads, rows, discarded)
        SELECT '${WORKSPACE.id}', 'srf_1', now64(3) - 1, 'traces', 3, 30, map('over_bound', 2)`,
    })
    const table = await run(['pipeline', '--url', api.baseUrl])
    expect(table.stdout.split('\n')).toEqual([
      'QUEUE              WAITING   WORK IN BYTES   OLDEST      REQUESTS',
      'traces             0         0               0.0 s       3',
      'over_bound: 0 dead letters, 0 replayed, 2 discarded',
      '',
    ])
    const json = await run(['pipeline', '--json', '--url', api.baseUrl])
    expect(JSON.parse(json.stdout)).toMatchObject({ history: { rates: [{ kind: 'traces' }] }, unavailable: null })
  })

  it('says in one line what is wrong', async () => {
    const at = ['--url', api.baseUrl]
    const wrong: [string[], Record<string, string>, number, RegExp][] = [
      [
        ['trace', 'f'.repeat(32), ...at],
        { PENSTOCK_TOKEN: token },
        3,
        /there is no trace f+, or it is no longer retained/,
      ],
      [['trace', TRACE.slice(16), ...at], { PENSTOCK_TOKEN: token }, 3, /there is no trace 0{16}[0-9a-f]{16}, or/],
      [['trace', 'x', ...at], { PENSTOCK_TOKEN: token }, 2, /It must have 32 hex digits/],
      [['trace', TRACE, ...at], { PENSTOCK_TOKEN: 'x' }, 1, /the API answered 401: AUTH_MISSING/],
      [['trace', TRACE, ...at], {}, 2, /set PENSTOCK_TOKEN/],
      [['findings'], { PENSTOCK_TOKEN: token }, 2, /set PENSTOCK_URL/],
      [['findings'], {}, 2, /set PENSTOCK_URL and PENSTOCK_TOKEN, or run "npm start"/],
      [['findings', 'merge', UNKNOWN, 'x', ...at], { PENSTOCK_TOKEN: token }, 2, /the id of a finding/],
      [['findings', 'split', UNKNOWN, UNKNOWN, ...at], { PENSTOCK_TOKEN: token }, 3, /there is no such finding/],
      [['findings', '--limit', '101', ...at], { PENSTOCK_TOKEN: token }, 2, /It must be a whole number from 1 to 100/],
    ]
    for (const [words, env, code, message] of wrong) {
      const ended = await run(words, env)
      expect({ words, code: ended.code }).toEqual({ words, code })
      expect(ended.stderr.trim()).toMatch(message)
      expect(ended.stderr).not.toContain('    at ')
    }
  })
})

const UNKNOWN = `fnd_${'d'.repeat(26)}`
const id = (number: number) => number.toString(16).padStart(16, '0')
