import { randomBytes } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { type AlertEvent, alertEventSchema, type FindingEvent } from '../../../schemas/http/alerts/events.ts'
import type { AlertsAnswer } from '../../../schemas/http/alerts/operations.ts'
import type { CalledKind } from '../../../schemas/records/alerts.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../receivers/webhook-receiver.ts'
import { type Answer, call } from '../services/api.ts'
import { type Stack, startStack } from '../services/stack.ts'
import { until } from '../until.ts'

/** Where links of messages lead to. */
export const PUBLIC_URL = 'https://penstock.example'

/** The product with a receiver of webhooks, named on-call, at `/hook?token=hidden`. */
export interface AlertsStage {
  readonly stack: Stack
  readonly receiver: WebhookReceiver
  ask(operation: string, body?: unknown): Promise<Answer>
  /** Returns what was received, each verified by its signature, in the order of its arrival. */
  events(): AlertEvent[]
  /** Waits for an event about a finding of this type. */
  untilCalled(kind: AlertEvent['type'], type: string): Promise<FindingEvent>
  /** Sends spans that fail with an exception of each of these types: one of each, or `times`. */
  throwErrors(types: readonly string[], options?: { readonly version?: string; readonly times?: number }): Promise<void>
  /** Sends spans, as OTLP writes them in JSON. */
  sendSpans(spans: readonly object[], version?: string): Promise<void>
  stop(): Promise<void>
}

const STACK_OF = (type: string) =>
  `${type}: the cart is empty\n    at Cart.total (/srv/shop/cart.js:12:7)\n    at main (/srv/shop/main.js:3:1)`

const attribute = (key: string, stringValue: string) => ({ key, value: { stringValue } })

/** Starts the product with these settings, and adds a receiver that is called for these kinds of events. */
export async function startAlertsStage(
  kinds: readonly CalledKind[],
  settings: Record<string, string> = {},
): Promise<AlertsStage> {
  const receiver = await startWebhookReceiver()
  const stack = await startStack({
    PUBLIC_URL,
    DELIVERY_KEY: randomBytes(32).toString('base64'),
    DELIVERY_ALLOWED_RECEIVERS: '127.0.0.0/8',
    ...settings,
  })
  const ask = (operation: string, body?: unknown) =>
    call(stack.apiUrl, operation, { bearer: stack.secrets.sessionToken, body })
  const answer = await ask('PUT /v3/alerts', {
    revision: 0,
    receivers: [{ name: 'on-call', channel: 'webhook', url: `${receiver.url}/hook?token=hidden` }],
    rules: [{ name: 'all', kinds }],
  })
  if (answer.status !== 200) throw new Error(`the receiver was answered with ${answer.status}`)
  const secret = (answer.body as AlertsAnswer).receivers[0]?.secret ?? ''
  const verified: AlertEvent[] = []
  const events = () => {
    for (const { headers, body } of receiver.received.slice(verified.length))
      verified.push(alertEventSchema.parse(new Webhook(secret).verify(body, headers)))
    return verified
  }

  const sendSpans: AlertsStage['sendSpans'] = (spans, version) => exportSpans(stack, spans, version)
  return {
    ...{ stack, receiver, ask, events, sendSpans },
    untilCalled(kind, type) {
      const isWanted = (event: AlertEvent): event is FindingEvent =>
        event.type === kind && 'finding' in event.data && event.data.finding.type === type
      return until(`${kind} of ${type}`, () => events().find(isWanted), { deadlineMs: 120_000 })
    },
    throwErrors: (types, { version, times = 1 } = {}) =>
      sendSpans(
        types.flatMap(type => Array.from({ length: times }, () => spanThrowing(type))),
        version,
      ),
    async stop() {
      await stack.stop()
      await receiver.stop()
    },
  }
}

async function exportSpans(stack: Stack, spans: readonly object[], version = '1.0'): Promise<void> {
  const resource = { attributes: [attribute('service.name', 'shop'), attribute('service.version', version)] }
  const sent = await fetch(`${stack.ingestUrl}/v1/traces`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-service-public-key': stack.secrets.publicKey },
    body: JSON.stringify({ resourceSpans: [{ resource, scopeSpans: [{ spans }] }] }),
  })
  if (sent.status !== 200) throw new Error(`the spans were refused: ${sent.status}`)
}

function spanThrowing(type: string): object {
  return failedSpan([
    attribute('exception.type', type),
    attribute('exception.message', 'the cart is empty'),
    attribute('exception.stacktrace', STACK_OF(type)),
  ])
}

/** Returns a span that failed now, with an exception that has these attributes, if there are any. */
export function failedSpan(exception: readonly object[] = [], attributes: readonly object[] = []): object {
  const nano = `${Date.now()}000000`
  const events = exception.length === 0 ? [] : [{ name: 'exception', timeUnixNano: nano, attributes: exception }]
  return {
    ...{ traceId: randomBytes(16).toString('hex'), spanId: randomBytes(8).toString('hex'), name: 'GET /cart', kind: 2 },
    ...{ startTimeUnixNano: nano, endTimeUnixNano: nano, status: { code: 2 }, attributes, events },
  }
}
