import { randomBytes } from 'node:crypto'
import { LoadConnection } from '../load/connection.ts'
import type { LoadPlan } from '../load/plan.ts'
import { buildBodies, type PreparedRequest, prepareRequest } from '../load/requests.ts'
import { pollUntil } from '../support/poll-until.ts'
import { tracesPlan } from './measure-stored.ts'

/** A request of one span, followed from its sending until it can be queried. Times are of `performance.now()`. */
export interface Marker {
  readonly sentAt: number
  /** Undefined while there is no answer, and for good after a 429. */
  acknowledgedAt?: number
  isRefused?: true
  visibleAt?: number
}

export interface MarkerSender {
  /** By number, in the order of sending. A marker's trace id ends in its number, as four bytes, most significant first. */
  readonly markers: readonly Marker[]
  /** Sends the next marker. Throws when no connection is free, or when an earlier marker got an answer that tells nothing. */
  send(): Marker
  /** Waits until every marker is acknowledged or refused. */
  untilAnswered(): Promise<void>
  close(): void
}

/** More than are ever in flight: the edge answers within a second, or is too slow for any figure. */
const CONNECTIONS = 256
const NUMBER_OFFSET = 12

/** Sends markers over keep-alive connections of its own, from this process: so it knows when each was acknowledged. */
export async function openMarkerSender(port: number, publicKey: string): Promise<MarkerSender> {
  const markers: Marker[] = []
  const traceIdPrefix = randomBytes(NUMBER_OFFSET)
  const free: LoadConnection[] = []
  const inFlight = new Map<LoadConnection, Marker>()
  let fault: string | undefined

  const connections = Array.from({ length: CONNECTIONS }, () => {
    return new LoadConnection(port, [markerRequest(port, publicKey, traceIdPrefix)], {
      onFree: connection => free.push(connection),
      onAnswer(connection, { status }) {
        const marker = inFlight.get(connection)
        inFlight.delete(connection)
        if (marker && status === 200) marker.acknowledgedAt = performance.now()
        else if (marker && status === 429) marker.isRefused = true
        else fault = `status ${status}`
        return 0
      },
      onFault(connection, code) {
        inFlight.delete(connection)
        fault = code
      },
    })
  })

  function assertSound(): void {
    if (fault !== undefined) throw new Error(`a marker was answered with ${fault}`)
  }

  await pollUntil('the connections for markers are open', 5_000, () => free.length === CONNECTIONS)
  return {
    markers,
    send() {
      assertSound()
      const connection = free.pop()
      if (connection === undefined) throw new Error(`${CONNECTIONS} markers are unanswered`)
      const request = connection.takeRequest()
      const traceIdAt = request.renewable.ids[0] as number
      request.bytes.writeUInt32BE(markers.length, traceIdAt + NUMBER_OFFSET)
      const marker: Marker = { sentAt: performance.now() }
      markers.push(marker)
      inFlight.set(connection, marker)
      connection.send(request, marker.sentAt)
      return marker
    },
    async untilAnswered() {
      await pollUntil('all markers are answered', 10_000, () => inFlight.size === 0)
      assertSound()
    },
    close() {
      for (const connection of connections) connection.close()
    },
  }
}

function markerRequest(port: number, publicKey: string, traceIdPrefix: Buffer): PreparedRequest {
  const payload = { spans: 1, pool: 1, freshIds: true }
  const plan: LoadPlan = {
    ...tracesPlan(port, [publicKey]),
    connections: 1,
    payload,
    mode: { kind: 'closed' },
    warmUpMs: 0,
    durationMs: 0,
  }
  const [body] = buildBodies(payload) as [Buffer]
  const request = prepareRequest(plan, body, 0)
  // The first id of a span is that of its trace.
  traceIdPrefix.copy(request.bytes, request.renewable.ids[0])
  return request
}
