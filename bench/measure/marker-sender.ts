import { randomBytes } from 'node:crypto'
import { LoadConnection } from '../load/connection.ts'
import type { LoadPlan } from '../load/plan.ts'
import { buildBodies, type PreparedRequest, prepareRequest } from '../load/requests.ts'
import { pollUntil } from '../support/poll-until.ts'
import { tracesPlan } from './measure-stored.ts'

/** A request of one span, tracked from its sending until it can be queried. Times are of `performance.now()`. */
export interface Marker {
  readonly sentAt: number
  /** Undefined before the response, and after a 429. */
  acknowledgedAt?: number
  isRefused?: true
  visibleAt?: number
}

/** Sends markers. */
export interface MarkerSender {
  /** Markers by number, in the order of sending. A marker's trace id ends with its number in four bytes, big-endian. */
  readonly markers: readonly Marker[]
  /**
   * Sends the next marker. Throws if no connection is free, or if an earlier marker got a status other than 200 and
   * 429.
   */
  send(): Marker
  /** Waits until every marker is acknowledged or refused. */
  untilAnswered(): Promise<void>
  close(): void
}

/** Number of connections, more than markers in flight: an edge that needs a second is too slow to be measured. */
const CONNECTIONS = 256
const NUMBER_OFFSET = 12

/** Opens connections and sends markers from this process, so that the time of each acknowledgement is known. */
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
    if (fault !== undefined) throw new Error(`a marker failed with ${fault}`)
  }

  await pollUntil('the connections for markers are open', 5_000, () => free.length === CONNECTIONS)
  return {
    markers,
    send() {
      assertSound()
      const connection = free.pop()
      if (connection === undefined) throw new Error(`${CONNECTIONS} markers have no response yet`)
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
    ...tracesPlan(port, publicKey),
    connections: 1,
    payload,
    mode: { kind: 'closed' },
    durationMs: 0,
  }
  const [body] = buildBodies(payload) as [Buffer]
  const request = prepareRequest(plan, body)
  // The first id in a span is its trace id.
  traceIdPrefix.copy(request.bytes, request.renewable.ids[0])
  return request
}
