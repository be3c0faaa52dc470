import type { DeliveryJob } from '../../../alerts/calling/delivery-queue.ts'
import type { AlertEvent } from '../../../schemas/http/alerts/events.ts'
import { EXAMPLE_EVENTS } from '../../../schemas/http/alerts/example-events.ts'

/** Returns a delivery of an event to a receiver, with the id that it has by default. */
export function exampleDelivery(
  more: Partial<DeliveryJob> = {},
  event: AlertEvent = EXAMPLE_EVENTS['finding.created'],
): DeliveryJob {
  const { receiverId = 'rcv_5f2c0a9b1e3d4c6a7f80' } = more
  return {
    version: 1,
    id: `${event.data.id}_${receiverId}`,
    workspaceId: event.data.workspaceId,
    receiverId,
    ruleName: 'all',
    events: [event],
    ...more,
  }
}
