import { afterAll, beforeAll, expect, it } from 'vitest'
import {
  type Finding,
  findingAnswerSchema,
  findingsPageSchema,
  findingTracesPageSchema,
} from '../../schemas/http/findings/schemas.ts'
import { findingActivityPageSchema } from '../../schemas/http/findings/work.ts'
import { signLocalSession } from '../../shared/ids/local-session-token.ts'
import { rounds } from '../support/length.ts'
import { type Answer, type Call, call } from '../support/services/api.ts'
import { type Stack, startStack } from '../support/services/stack.ts'
import { until } from '../support/until.ts'

const KINDS = 12
/** Merges, splits and comments. Their entries are fewer than an activity keeps. */
const CHANGES = 20 + rounds(130)
const KILLS = 8

let stack: Stack
let bearer: string

beforeAll(async () => {
  stack = await startStack({ JOB_LOCK_MS: '2000', JOB_STALLED_CHECK_MS: '500', SWEEP_INTERVAL_MS: '1000' })
  const { authPrivateKey: privateKey, userId, workspaceSlug: org } = stack.secrets
  const issuedAt = Math.floor(Date.now() / 1_000)
  bearer = await signLocalSession({ privateKey, userId, org, issuedAt, expiresAt: issuedAt + 1_200 })
})
afterAll(() => stack?.stop())

it('merges and splits findings exactly while exceptions arrive and workers and API are killed', async () => {
  const sent = new Array<number>(KINDS).fill(0)
  for (let kind = 0; kind < KINDS; kind++) await throwOne(sent, kind)
  const ids = await until('all kinds are findings', async () => {
    const found = await list()
    return found.length < KINDS
      ? undefined
      : [...sent.keys()].map(kind => found.find(({ type }) => type === typeOf(kind))?.id ?? '')
  })

  let made = 0
  let isDone = false
  const load = (async () => {
    for (let i = 0; !isDone; i++) await throwOne(sent, i % KINDS)
  })()
  const killer = (async () => {
    for (let kill = 0; kill < KILLS && !isDone; kill++) {
      const target = (kill / KILLS) * CHANGES
      await until('some changes are made', async () => made >= target || isDone, { deadlineMs: 120_000 })
      const victim = kill % 2 === 0 ? stack.api : stack.workers
      await victim.kill9()
      await victim.restart()
    }
  })()
  // The finding that each kind is merged into, and the texts of the comments of each finding.
  const into = [...ids.keys()]
  const comments = ids.map((): string[] => [])
  let random = 7
  const pick = (count: number) => {
    random = (random * 16_807) % 2_147_483_647
    return random % count
  }
  for (; made < CHANGES; made++) {
    const [a, b] = [pick(KINDS), pick(KINDS)]
    const [first, second] = [into[a] ?? 0, into[b] ?? 0]
    if (made % 3 === 0) {
      const text = `comment-${made}`
      await changed(`${ids[a]}/comments`, { text }, text)
      comments[first]?.push(text)
    } else if (first !== second) {
      const [stays, merged] = first < second ? [first, second] : [second, first]
      expect(await changed(`${ids[a]}/merge`, { findingIds: [ids[b]] })).toMatchObject({ finding: { id: ids[stays] } })
      comments[stays]?.push(...(comments[merged]?.splice(0) ?? []))
      for (const [kind, is] of into.entries()) if (is === merged) into[kind] = stays
    } else if (a !== first) {
      const answer = await changed(`${ids[first]}/split`, { findingId: ids[a] })
      expect(answer).toMatchObject({ finding: { id: ids[a], status: 'open', splitFrom: ids[first] } })
      into[a] = a
    }
  }
  isDone = true
  await Promise.all([load, killer])

  const counts = ids.map((_, finding) =>
    sent.reduce((sum, count, kind) => sum + (into[kind] === finding ? count : 0), 0),
  )
  const expected = ids.flatMap((id, finding) => (into[finding] === finding ? [[id, counts[finding]]] : [])).sort()
  await until(
    'everything is stored, once',
    async () => {
      const found = (await list()).map(({ id, occurrenceCount }) => [id, occurrenceCount]).sort()
      return JSON.stringify(found) === JSON.stringify(expected)
    },
    { deadlineMs: 120_000 },
  )
  for (const [kind, id] of ids.entries()) {
    const stays = into[kind] ?? 0
    const { finding } = findingAnswerSchema.parse((await read(`/v3/findings/${id}`)).body)
    expect([finding.id, finding.occurrenceCount]).toEqual([ids[stays], counts[stays]])
    const merged = ids.filter((other, of) => into[of] === stays && other !== ids[stays])
    expect([...(finding.mergedFindingIds ?? [])].sort()).toEqual(merged.sort())
    const { traces } = findingTracesPageSchema.parse((await read(`/v3/findings/${id}/traces?limit=100`)).body)
    expect(traces.length).toBe(Math.min(counts[stays] ?? 0, 100))
    const activity = findingActivityPageSchema.parse(
      (await read(`/v3/findings/${id}/activity?limit=100`)).body,
    ).activity
    expect(activity.flatMap(({ text }) => text ?? []).sort()).toEqual([...(comments[stays] ?? [])].sort())
  }
}, 400_000)

const typeOf = (kind: number) => `Kind${'abcdefghijkl'[kind]}`

/** Sends an exception of a kind in a trace of its own, and counts it. The edge is never killed. */
async function throwOne(sent: number[], kind: number): Promise<void> {
  const number = sent.reduce((sum, count) => sum + count, 0) + 1
  const attributes = [{ key: 'exception.type', value: { stringValue: typeOf(kind) } }]
  // The first one of a kind is the earlier the lower its number is.
  const timeUnixNano = String(BigInt(Date.now() - (sent[kind] === 0 ? 60_000 - kind * 1_000 : 0)) * 1_000_000n)
  const span = {
    ...{ traceId: number.toString(16).padStart(32, '0'), spanId: 'aa'.repeat(8), name: 'work' },
    ...{ startTimeUnixNano: timeUnixNano, endTimeUnixNano: timeUnixNano },
    events: [{ name: 'exception', timeUnixNano, attributes }],
  }
  const response = await fetch(`${stack.ingestUrl}/v1/traces`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-service-public-key': stack.secrets.publicKey },
    body: JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans: [span] }] }] }),
  })
  expect(response.status).toBe(200)
  sent[kind] = (sent[kind] ?? 0) + 1
}

/** Asks until the API answers with success, which it does not while it is killed. */
async function ask(operation: string, request: Call): Promise<Answer> {
  return until(
    operation,
    async () => {
      const answer = await call(stack.apiUrl, operation, { bearer, ...request }).catch(() => undefined)
      if (answer !== undefined && answer.status >= 400 && answer.status < 500 && answer.status !== 429) {
        throw new Error(`${operation}: ${JSON.stringify(answer.body)}`)
      }
      return answer !== undefined && answer.status < 300 ? answer : undefined
    },
    { deadlineMs: 60_000 },
  )
}

const read = (path: string) => ask(`GET ${path}`, {})

async function changed(path: string, body: object, idempotencyKey?: string): Promise<unknown> {
  const headers = idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }
  return (await ask(`POST /v3/findings/${path}`, { body, headers })).body
}

async function list(): Promise<readonly Finding[]> {
  return findingsPageSchema.parse((await read('/v3/findings?limit=100')).body).findings
}
