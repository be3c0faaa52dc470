import { SessionHeartbeatsTable } from '../../clickhouse/tables/session-heartbeats-table.ts'
import { SessionIdentitiesTable } from '../../clickhouse/tables/session-identities-table.ts'
import { sessionEventSchema } from '../../schemas/queues/jobs.ts'
import { createJsonRowsBatch } from '../sink/json-rows-batch.ts'
import type { RowBatch } from '../sink/row-batch.ts'

/** Creates rows of `session_identities` and `session_heartbeats` from the events of the queue `sessions`. */
export function createSessionsBatch(): RowBatch {
  const identities = new SessionIdentitiesTable()
  const heartbeats = new SessionHeartbeatsTable()
  return createJsonRowsBatch([identities.buffer, heartbeats.buffer], (frame, value) => {
    const event = sessionEventSchema.parse(value)
    const { sessionId, deviceId = '', visitorId = '', fpHash = '' } = event
    const { workspaceId, surfaceId, receivedAtMs } = frame
    const row = { workspaceId, surfaceId, sessionId, receivedAtMs, deviceId, visitorId, fpHash }
    if (event.kind === 'heartbeat') {
      heartbeats.append(row)
      return
    }
    const { identifier, source, avatar = '', email = '', name = '', country = '', traits = '{}' } = event
    const person = { identifier, avatar, email, name, country, traits }
    identities.append({ ...row, ...person, sourceType: source.type, sourceName: source.name })
  })
}
