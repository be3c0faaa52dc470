import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runInNewContext } from 'node:vm'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { FindingRulesAnswer } from '../../schemas/http/findings/rules.ts'
import { type Finding, findingAnswerSchema, findingsPageSchema } from '../../schemas/http/findings/schemas.ts'
import { signLocalSession } from '../../shared/ids/local-session-token.ts'
import { createReleaseClient, entryOf } from '../support/clients/release-client.ts'
import { rounds } from '../support/length.ts'
import { type BuiltApp, buildApp } from '../support/pages/built-app.ts'
import { type Answer, call } from '../support/services/api.ts'
import { type Stack, startStack } from '../support/services/stack.ts'
import { until } from '../support/until.ts'

/** Versions of an application, whose maps arrive one after the other while they throw. */
const VERSIONS = Array.from({ length: 3 + rounds(6) }, (_, i) => `1.${i}.0`)
/** Types of exceptions that rules join and separate. */
const RULED = ['RuledA', 'RuledB', 'RuledC']
const JOINED = [{ name: 'all', type: 'Ruled*', fingerprint: 'ruled' }]

let stack: Stack
let bearer: string
let directory: string
const builds: { readonly app: BuiltApp; readonly stacktrace: string }[] = []

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'penstock-moved-'))
  for (const version of VERSIONS) {
    const app = await buildApp('esbuild', join(directory, version), version)
    builds.push({ app, stacktrace: await throwIn(app) })
  }
  stack = await startStack({ JOB_LOCK_MS: '2000', JOB_STALLED_CHECK_MS: '500', SWEEP_INTERVAL_MS: '1000' })
  const { authPrivateKey: privateKey, userId, workspaceSlug: org } = stack.secrets
  const issuedAt = Math.floor(Date.now() / 1_000)
  bearer = await signLocalSession({ privateKey, userId, org, issuedAt, expiresAt: issuedAt + 1_200 })
})
afterAll(async () => {
  await stack?.stop()
  if (directory !== undefined) await rm(directory, { recursive: true })
})

it('moves exceptions exactly while maps arrive late, rules change and workers are killed', async () => {
  const sent = new Map<string, number>()
  const seen = new Set<string>()
  /** Versions and types that still throw. The variants of others move by themselves: no later exception takes them along. */
  const active = new Set([...VERSIONS, ...RULED])
  let isDone = false
  let number = 0
  const load = (async () => {
    while (!isDone) {
      for (const [i, version] of VERSIONS.entries())
        if (active.has(version)) await send('Error', version, builds[i]?.stacktrace ?? '')
      for (const type of RULED) if (active.has(type)) await send(type, '', '')
    }
  })()
  async function send(type: string, version: string, stacktrace: string): Promise<void> {
    await throwOne(++number, { type, version, stacktrace })
    const key = version || type
    sent.set(key, (sent.get(key) ?? 0) + 1)
  }
  const countOf = (keys: readonly string[]) => keys.reduce((sum, key) => sum + (sent.get(key) ?? 0), 0)

  await until('each has occurred', async () => [...VERSIONS, ...RULED].every(key => sent.has(key)))
  active.delete('RuledC')
  const asSent = await until('they are findings as they were sent', async () => {
    const ids = (await list()).filter(({ type }) => type === 'Error').map(({ id }) => id)
    return ids.length > 0 ? ids : undefined
  })
  const releases = createReleaseClient(stack.ingestUrl, stack.secrets.secretKey)
  for (const [i, version] of VERSIONS.entries()) {
    for (const { id } of await list()) seen.add(id)
    active.delete(version)
    if (i === VERSIONS.length - 1) {
      // Nothing but its maps moves the last one.
      await replaceRules(JOINED)
      await until('the rules are applied', async () => (await readRules()).isApplied, { deadlineMs: 120_000 })
    }
    const { app } = builds[i] as (typeof builds)[number]
    const slug = await releases.register(version)
    const map = { path: `${app.script}.map`, bytes: app.map }
    await releases.upload(slug, [map])
    await releases.complete(slug, [entryOf(map, { chunkUrl: addressOf(app) })])
    if (i < VERSIONS.length - 1) await replaceRules(i % 2 === 0 ? JOINED : [])
    // A little later each time, so that it ends before, within and after the moves.
    const next = number + 1 + (i % 7)
    await until('some more have occurred', async () => number >= next)
    await stack.workers.kill9()
    await stack.workers.restart()
  }
  isDone = true
  await load

  const expected = [countOf(VERSIONS), countOf(RULED)].sort()
  const found = await until(
    'everything is in two findings, once',
    async () => {
      const all = await list()
      const counts = all.map(({ occurrenceCount }) => occurrenceCount).sort()
      const isMoved = !all.some(({ id }) => asSent.includes(id))
      return isMoved && JSON.stringify(counts) === JSON.stringify(expected) ? all : undefined
    },
    { deadlineMs: 120_000 },
  )
  const mapped = found.find(({ type }) => type === 'Error') as Finding
  const { finding } = findingAnswerSchema.parse((await ask(`GET /v3/findings/${mapped.id}`)).body)
  expect(finding.frames[0]).toMatchObject({ function: 'lookUp', resolved: true })
  expect(finding.seenIn.serviceVersions).toEqual([...VERSIONS].sort())
  // The ids of before lead to where their exceptions are.
  for (const id of seen) {
    const { finding: current } = findingAnswerSchema.parse((await ask(`GET /v3/findings/${id}`)).body)
    expect(found.map(one => one.id)).toContain(current.id)
  }
}, 400_000)

const addressOf = ({ script }: BuiltApp) => `https://shop.example/${script}`

/** Returns the stack of the failure of a build. */
async function throwIn(app: BuiltApp): Promise<string> {
  const scope: { shop?: { placeOrder(sku: string): Promise<number> } } = {}
  runInNewContext(await readFile(join(app.directory, app.script), 'utf8'), scope, { filename: addressOf(app) })
  return (await scope.shop?.placeOrder('pen').then(
    () => '',
    error => String(error.stack),
  )) as string
}

interface Thrown {
  readonly type: string
  readonly version: string
  readonly stacktrace: string
}

/** Sends an exception in a trace of its own. The edge is never killed. */
async function throwOne(number: number, { type, version, stacktrace }: Thrown): Promise<void> {
  const text = (key: string, stringValue: string) => ({ key, value: { stringValue } })
  const timeUnixNano = String(BigInt(Date.now()) * 1_000_000n)
  const attributes = [text('exception.type', type), text('exception.stacktrace', stacktrace)]
  const span = {
    ...{ traceId: number.toString(16).padStart(32, '0'), spanId: 'aa'.repeat(8), name: 'work' },
    ...{ startTimeUnixNano: timeUnixNano, endTimeUnixNano: timeUnixNano },
    events: [{ name: 'exception', timeUnixNano, attributes }],
  }
  const resource = { attributes: [text('service.name', 'shop'), text('service.version', version)] }
  const response = await fetch(`${stack.ingestUrl}/v1/traces`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-service-public-key': stack.secrets.publicKey },
    body: JSON.stringify({ resourceSpans: [{ resource, scopeSpans: [{ spans: [span] }] }] }),
  })
  expect(response.status).toBe(200)
}

async function ask(operation: string, body?: object): Promise<Answer> {
  const answer = await call(stack.apiUrl, operation, { bearer, ...(body && { body }) })
  expect(answer).toMatchObject({ status: 200 })
  return answer
}

async function readRules(): Promise<FindingRulesAnswer> {
  return (await ask('GET /v3/finding-rules')).body as FindingRulesAnswer
}

async function replaceRules(rules: readonly object[]): Promise<void> {
  const { revision } = await readRules()
  await ask('PUT /v3/finding-rules', { revision, rules })
}

async function list(): Promise<readonly Finding[]> {
  return findingsPageSchema.parse((await ask('GET /v3/findings?limit=100')).body).findings
}
