import { randomBytes } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type AlertEvent, alertEventSchema } from '../../schemas/http/alerts/events.ts'
import type { AlertsAnswer } from '../../schemas/http/alerts/operations.ts'
import { rounds } from '../support/length.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../support/receivers/webhook-receiver.ts'
import { call } from '../support/services/api.ts'
import { type Stack, startStack } from '../support/services/stack.ts'
import { until } from '../support/until.ts'

const KILLS = 6 + rounds(14)
const FINDINGS_OF_REQUEST = 25

let stack: Stack
let receiver: WebhookReceiver
let secret: string

beforeAll(async () => {
  receiver = await startWebhookReceiver()
  stack = await startStack({
    PUBLIC_URL: 'https://penstock.example',
    DELIVERY_KEY: randomBytes(32).toString('base64'),
    DELIVERY_ALLOWED_RECEIVERS: '127.0.0.0/8',
    ...{ JOB_LOCK_MS: '2000', JOB_STALLED_CHECK_MS: '500', SWEEP_INTERVAL_MS: '1000' },
  })
  const body = {
    ...{ revision: 0, rules: [{ name: 'new', kinds: ['finding.created'] }] },
    receivers: [{ name: 'hook', channel: 'webhook', url: receiver.url }],
  }
  const answer = await call(stack.apiUrl, 'PUT /v3/alerts', { bearer: stack.secrets.sessionToken, body })
  secret = (answer.body as AlertsAnswer).receivers[0]?.secret ?? ''
})
afterAll(async () => {
  await stack?.stop()
  await receiver?.stop()
})

it(`calls for each new finding through ${KILLS} kills of watcher and deliverer, and repeats only equal ids`, async () => {
  await throwNew(['Begin'])
  await until('the first is called for', () => calledTypes().has('Begin'), { deadlineMs: 60_000 })
  const sent: string[] = []
  for (let kill = 0; kill < KILLS; kill++) {
    const types = Array.from({ length: FINDINGS_OF_REQUEST }, (_, i) => `Kind${kill}x${i}`)
    await throwNew(types)
    sent.push(...types)
    // Killed while occasions are found, queued and sent.
    if (kill % 2 === 0) await until('some are called for', () => types.some(type => calledTypes().has(type)))
    await stack.workers.kill9()
    await stack.workers.restart()
  }
  await until('all are called for', () => sent.every(type => calledTypes().has(type)), { deadlineMs: 120_000 })
  const idsOf = Map.groupBy(events(), event => ('finding' in event.data ? event.data.finding.type : ''))
  for (const type of sent) {
    expect(new Set(idsOf.get(type)?.map(({ data }) => data.id)).size, type).toBe(1)
  }
})

function events(): AlertEvent[] {
  return receiver.received.map(({ headers, body }) => alertEventSchema.parse(new Webhook(secret).verify(body, headers)))
}

function calledTypes(): Set<string> {
  return new Set(events().flatMap(({ data }) => ('finding' in data ? data.finding.type : [])))
}

/** Sends an exception of each of these types. */
async function throwNew(types: readonly string[]): Promise<void> {
  const nano = `${Date.now()}000000`
  const spans = types.map(type => ({
    ...{ traceId: randomBytes(16).toString('hex'), spanId: randomBytes(8).toString('hex'), name: 'GET /cart' },
    ...{ startTimeUnixNano: nano, endTimeUnixNano: nano, status: { code: 2 } },
    events: [
      {
        ...{ name: 'exception', timeUnixNano: nano },
        attributes: [{ key: 'exception.type', value: { stringValue: type } }],
      },
    ],
  }))
  const answer = await fetch(`${stack.ingestUrl}/v1/traces`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-service-public-key': stack.secrets.publicKey },
    body: JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans }] }] }),
  })
  expect(answer.status).toBe(200)
}
