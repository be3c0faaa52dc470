import { setTimeout as delay } from 'node:timers/promises'
import type { LocalSecrets } from '../../../deploy/local/workspace/secrets.ts'
import { seededRandom } from '../payloads/scramble-message.ts'
import { until } from '../until.ts'
import { BuildClient } from './build-client.ts'
import { Ledger, type LedgerEntry, type Outcome } from './ledger.ts'
import { PAYLOADS, type SentPayload } from './payloads.ts'

/** After this time without an answer, a client gives up. */
const CLIENT_TIMEOUT_MS = 5_000
/** Requests in flight, above which a client leaves requests out as an SDK drops what its queue cannot take. */
const MOST_IN_FLIGHT = 300
/** Further attempts of a client that sends a payload until it is acknowledged. */
const MOST_REPEATS = 10
const REPEAT_AFTER_MS = 1_000
/** All kinds except the one that is refused. */
const STORED_KINDS = Object.keys(PAYLOADS).length - 1

/** Addresses, credentials and pace of the clients. */
interface ClientsOptions {
  readonly edgeUrls: readonly string[]
  readonly secrets: LocalSecrets
  readonly seed: number
  /** Requests per second of each kind. */
  readonly rate: number
  /** The kinds, `PAYLOADS` by default. */
  readonly payloads?: typeof PAYLOADS
}

/** Clients of every kind, each of which sends known payloads at a steady rate and writes the answers into a ledger. */
export interface Clients {
  readonly ledger: Ledger
  readonly builds: BuildClient
  /** Longest time from the request to its answer since the last call, in ms. Requests without an answer do not count. */
  takeSlowestMs(): number
  /** Waits until a payload of every kind that was sent after this call is acknowledged. */
  untilServed(deadlineMs: number): Promise<unknown>
  /** Waits for the last answers. */
  stop(): Promise<void>
}

/** Starts the clients. */
export function startClients({ edgeUrls, secrets, seed, rate, payloads = PAYLOADS }: ClientsOptions): Clients {
  const ledger = new Ledger()
  const inFlight = new Set<Promise<void>>()
  const builds = new BuildClient({ edgeUrls, secretKey: secrets.secretKey })
  let isSending = true
  let slowestMs = 0

  async function send(payload: SentPayload, entry: LedgerEntry, serial: number): Promise<void> {
    for (let attempt = 0; ; attempt++) {
      await sendOnce(payload, entry, edgeUrls[(serial + attempt) % edgeUrls.length] as string)
      if (!payload.isRepeated || entry.outcome === 'acknowledged' || attempt === MOST_REPEATS || !isSending) return
      await delay(REPEAT_AFTER_MS)
    }
  }

  async function sendOnce({ path, headers, body }: SentPayload, entry: LedgerEntry, edgeUrl: string): Promise<void> {
    const credential = path.startsWith('/v3/releases/')
      ? { authorization: `Bearer ${secrets.secretKey}` }
      : { 'x-service-public-key': secrets.publicKey }
    const startedAt = performance.now()
    try {
      const response = await fetch(edgeUrl + path, {
        method: 'POST',
        headers: { ...credential, ...headers },
        body: body as Uint8Array<ArrayBuffer>,
        signal: AbortSignal.timeout(CLIENT_TIMEOUT_MS),
      })
      await response.arrayBuffer()
      slowestMs = Math.max(slowestMs, performance.now() - startedAt)
      entry.outcome = outcomeAfter(entry, outcomeOf(response.status))
      entry.answer = String(response.status)
      if (response.status === 200) entry.receiptId = response.headers.get('x-receipt-id') ?? 'none'
    } catch (error) {
      entry.outcome = outcomeAfter(entry, 'unknown')
      entry.answer = ((error as Error).cause as NodeJS.ErrnoException | undefined)?.code ?? (error as Error).name
    }
  }

  async function keepSending(kind: string, index: number): Promise<void> {
    const make = payloads[kind]
    if (make === undefined) throw new RangeError(`there are no payloads of the kind ${kind}`)
    const random = seededRandom(seed + index)
    const startedAt = performance.now()
    for (let serial = 1; isSending; serial++) {
      // The kinds take turns within an interval.
      const at = ((serial + index / Object.keys(PAYLOADS).length) * 1_000) / rate
      await delay(Math.max(0, at - (performance.now() - startedAt)))
      const payload = make(serial, random, secrets)
      if (inFlight.size >= MOST_IN_FLIGHT) continue
      const sending = send(payload, ledger.add(payload.entry), serial)
      inFlight.add(sending)
      void sending.then(() => inFlight.delete(sending))
    }
  }

  const senders = [...Object.keys(PAYLOADS).map(keepSending), builds.keepSending(() => isSending)]
  return {
    ledger,
    builds,
    takeSlowestMs() {
      const slowest = slowestMs
      slowestMs = 0
      return slowest
    },
    untilServed(deadlineMs) {
      const before = ledger.entries.length
      const isServed = () => ledger.acknowledgedSince(before).size === STORED_KINDS
      return until('a payload of every kind is acknowledged', isServed, { deadlineMs })
    },
    async stop() {
      isSending = false
      await Promise.all(senders)
      await Promise.all(inFlight)
    },
  }
}

/** Returns what is known of a payload after one attempt more: one that is refused stores nothing, so the others decide. */
function outcomeAfter({ answer, outcome }: LedgerEntry, last: Outcome): Outcome {
  return answer === 'none' || last !== 'refused' ? last : outcome
}

/** Returns what an answer states about the payload (docs/api/backpressure.md#backpressure). */
function outcomeOf(status: number): Outcome {
  if (status === 200) return 'acknowledged'
  return status < 500 ? 'refused' : 'unknown'
}
