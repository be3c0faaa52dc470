import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { encodeReplayMetadata } from '../clients/encode-replay-metadata.ts'
import { until } from '../until.ts'
import { oneLog, onePoint, oneSpan } from './bodies.ts'
import type { HostileTenant } from './tenants.ts'

/** Pause of each sender between two requests. */
const PAUSE_MS = 100
const POLL_MS = 250
/** The default timeout of OpenTelemetry's exporters: a request that takes longer counts as refused. */
const CLIENT_TIMEOUT_MS = 10_000

/** Experiences of a client that does nothing wrong. */
export interface VictimReport {
  readonly name: string
  readonly sent: number
  /** Requests that were not accepted: operation and status, or error → number. */
  readonly refused: Readonly<Record<string, number>>
  readonly slowestMs: number
  /** Longest time from the acceptance of a payload until it could be read. */
  readonly storedWithinMs: number
  /** Accepted payloads that are stored never or more than once: kind → stored − accepted. */
  readonly miscounted: Readonly<Record<string, number>>
}

interface Kind {
  readonly send: () => Promise<Response>
  /** Counts the stored payloads. Undefined for reads. */
  readonly count: string | undefined
}

/**
 * A client that sends a little of everything, steadily, and looks when it is stored. It never repeats a request, so that
 * each refusal is seen.
 */
export class Victim {
  readonly #name: string
  readonly #clickhouse: ClickHouseClient
  readonly #kinds: Readonly<Record<string, Kind>>
  readonly #acceptedAt = new Map<string, number[]>()
  readonly #stored = new Map<string, number>()
  readonly #refused: Record<string, number> = {}
  #sent = 0
  #slowestMs = 0
  #storedWithinMs = 0
  #isSending = true
  readonly #senders: Promise<void>[]
  readonly #poller: Promise<void>
  #isPolling = true

  constructor(
    name: string,
    addresses: { readonly edgeUrl: string; readonly apiUrl: string },
    tenant: HostileTenant,
    clickhouse: ClickHouseClient,
  ) {
    this.#name = name
    this.#clickhouse = clickhouse
    this.#kinds = kindsOf(addresses, tenant)
    this.#senders = Object.entries(this.#kinds).map(([kind, { send }]) => this.#keepSending(kind, send))
    this.#poller = this.#keepPolling()
  }

  /** Ends sending, and resolves when everything is stored, or `deadlineMs` later. */
  async end(deadlineMs: number): Promise<VictimReport> {
    this.#isSending = false
    await Promise.all(this.#senders)
    await until('everything is stored', () => this.#open() === 0, { deadlineMs, everyMs: POLL_MS }).catch(() => {})
    this.#isPolling = false
    await this.#poller
    const lateMs = [...this.#acceptedAt].flatMap(([kind, times]) => {
      const first = times[this.#stored.get(kind) ?? 0]
      return first === undefined ? [] : [Date.now() - first]
    })
    const miscounted = [...this.#acceptedAt]
      .map(([kind, times]) => [kind, (this.#stored.get(kind) ?? 0) - times.length] as const)
      .filter(([kind, difference]) => difference < 0 || difference > this.#uncertain(kind))
    return {
      name: this.#name,
      sent: this.#sent,
      refused: this.#refused,
      slowestMs: Math.round(this.#slowestMs),
      storedWithinMs: Math.round(Math.max(this.#storedWithinMs, ...lateMs)),
      miscounted: Object.fromEntries(miscounted),
    }
  }

  /** Returns how many requests may be stored though they were not accepted (docs/api/requests.md#problems). */
  #uncertain(kind: string): number {
    const outcomes = Object.entries(this.#refused).filter(([outcome]) => outcome.startsWith(`${kind} `))
    return outcomes.reduce((sum, [outcome, count]) => (/ 4\d\d$/.test(outcome) ? sum : sum + count), 0)
  }

  #open(): number {
    const open = [...this.#acceptedAt].map(([kind, times]) => times.length - (this.#stored.get(kind) ?? 0))
    return open.reduce((sum, difference) => sum + Math.max(0, difference), 0)
  }

  async #keepSending(kind: string, send: () => Promise<Response>): Promise<void> {
    const acceptedAt: number[] = []
    if (this.#kinds[kind]?.count !== undefined) this.#acceptedAt.set(kind, acceptedAt)
    while (this.#isSending) {
      const startedAt = performance.now()
      this.#sent++
      const outcome = await send().then(
        async response => {
          await response.arrayBuffer()
          return response.status
        },
        (error: Error) => (error.cause as NodeJS.ErrnoException | undefined)?.code ?? error.name,
      )
      this.#slowestMs = Math.max(this.#slowestMs, performance.now() - startedAt)
      if (outcome === 200) acceptedAt.push(Date.now())
      else this.#refused[`${kind} ${outcome}`] = (this.#refused[`${kind} ${outcome}`] ?? 0) + 1
      await delay(PAUSE_MS)
    }
  }

  async #keepPolling(): Promise<void> {
    while (this.#isPolling) {
      await this.#poll().catch(() => {})
      await delay(POLL_MS)
    }
  }

  async #poll(): Promise<void> {
    const counted = Object.entries(this.#kinds).flatMap(([kind, { count }]) =>
      count === undefined ? [] : [`SELECT '${kind}' AS kind, toUInt32(count()) AS stored FROM ${count}`],
    )
    const result = await this.#clickhouse.query({ query: counted.join(' UNION ALL '), format: 'JSONEachRow' })
    for (const { kind, stored } of await result.json<{ kind: string; stored: number }>()) {
      // Payloads are stored nearly in the order in which they were accepted.
      const times = this.#acceptedAt.get(kind) ?? []
      for (let i = this.#stored.get(kind) ?? 0; i < Math.min(stored, times.length); i++) {
        this.#storedWithinMs = Math.max(this.#storedWithinMs, Date.now() - (times[i] as number))
      }
      this.#stored.set(kind, stored)
    }
  }
}

function kindsOf(
  { edgeUrl, apiUrl }: { readonly edgeUrl: string; readonly apiUrl: string },
  tenant: HostileTenant,
): Record<string, Kind> {
  // One victim may share its workspace with the attacker, so that service and session are its own.
  const service = `victim-${randomBytes(6).toString('hex')}`
  const sessionId = service
  const post = (path: string, body: Uint8Array | string, headers: Record<string, string>) =>
    fetch(edgeUrl + path, {
      method: 'POST',
      body: body as Uint8Array<ArrayBuffer>,
      headers: { 'x-service-public-key': tenant.publicKey, ...headers },
      signal: AbortSignal.timeout(CLIENT_TIMEOUT_MS),
    })
  const drain = (otlpSignal: string, make: (service: string) => Uint8Array) => () =>
    post(`/drain/v1/${otlpSignal}`, make(service), { 'content-type': 'application/x-protobuf' })
  let segmentId = 0
  const replay = () => {
    const now = Date.now()
    const metadata = encodeReplayMetadata({ windowId: 'w', segmentId: segmentId++, firstTs: now, lastTs: now })
    return post(`/v3/replay/upload/${sessionId}`, `{"type":3,"data":{},"timestamp":${now}}\n`, {
      'x-replay-metadata': metadata,
    })
  }
  const heartbeat = () => post('/v3/session', JSON.stringify({ sessionId }), { 'content-type': 'application/json' })
  const findings = () =>
    fetch(`${apiUrl}/v3/findings`, {
      headers: { authorization: `Bearer ${tenant.sessionToken}` },
      signal: AbortSignal.timeout(CLIENT_TIMEOUT_MS),
    })
  const ofService = `WHERE workspace_id = '${tenant.workspaceId}' AND service_name = '${service}'`
  const ofSession = `WHERE workspace_id = '${tenant.workspaceId}' AND session_id = '${sessionId}'`
  return {
    traces: { send: drain('traces', oneSpan), count: `spans ${ofService}` },
    logs: { send: drain('logs', oneLog), count: `logs ${ofService}` },
    metrics: { send: drain('metrics', onePoint), count: `metric_points ${ofService}` },
    heartbeats: { send: heartbeat, count: `session_heartbeats ${ofSession}` },
    replay: { send: replay, count: `replay_chunks ${ofSession}` },
    findings: { send: findings, count: undefined },
  }
}
