import { randomBytes } from 'node:crypto'
import { LoadConnection } from '../load/connection.ts'
import type { LoadPlan, SpanData } from '../load/plan.ts'
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
  /** Start of the exception type of each marker, which its number follows, if markers have exceptions. */
  readonly typePrefix: string
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
const TYPE_DIGITS = 8

/** Opens connections and sends markers from this process, so that the time of each acknowledgement is known. */
export async function openMarkerSender(port: number, publicKey: string, data: SpanData): Promise<MarkerSender> {
  const markers: Marker[] = []
  const traceIdPrefix = randomBytes(NUMBER_OFFSET)
  const typePrefix = `Marker${traceIdPrefix.toString('hex', 0, 2)}`
  const free: LoadConnection[] = []
  const inFlight = new Map<LoadConnection, Marker>()
  let fault: string | undefined

  const connections = Array.from({ length: CONNECTIONS }, () => {
    return new LoadConnection(port, [markerRequest(tracesPlan(port, publicKey), data, traceIdPrefix, typePrefix)], {
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
    typePrefix,
    send() {
      assertSound()
      const connection = free.pop()
      if (connection === undefined) throw new Error(`${CONNECTIONS} markers have no response yet`)
      const request = connection.takeRequest()
      const traceIdAt = request.renewable.ids[0] as number
      request.bytes.writeUInt32BE(markers.length, traceIdAt + NUMBER_OFFSET)
      const digits = String(markers.length).padStart(TYPE_DIGITS, '0')
      for (const at of placesOf(request.bytes, typePrefix))
        request.bytes.write(digits, at + typePrefix.length, 'latin1')
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

function markerRequest(
  usual: ReturnType<typeof tracesPlan>,
  data: SpanData,
  traceIdPrefix: Buffer,
  typePrefix: string,
): PreparedRequest {
  const payload = { spans: 1, pool: 1, freshIds: true, data }
  const plan: LoadPlan = {
    ...usual,
    connections: 1,
    payload,
    mode: { kind: 'closed' },
    durationMs: 0,
  }
  const [body] = buildBodies(payload) as [Buffer]
  // The type that `tracePayload` gives to exceptions is as long as the prefix with a number.
  for (const at of placesOf(body, 'OrderNotFoundError')) body.write(typePrefix, at, 'latin1')
  const request = prepareRequest(plan, body)
  // The first id in a span is its trace id.
  traceIdPrefix.copy(request.bytes, request.renewable.ids[0])
  return request
}

/** Returns where a text occurs. */
function placesOf(bytes: Buffer, text: string): number[] {
  const places: number[] = []
  for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + 1)) places.push(at)
  return places
}
