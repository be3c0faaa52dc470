import type { WaitingDeliveries } from '../alerts/calling/waiting-deliveries.ts'
import { ATTEMPT_RESULTS, type Attempt } from '../schemas/records/alerts.ts'
import type { Metrics } from '../shared/runtime/metrics.ts'
import { shareReads } from '../shared/runtime/shared-read.ts'

/** The metrics of the deliveries of alerts. */
export interface DeliveryMetrics {
  /** Shows the deliveries that wait. All processes of the workers show the same. */
  watchDeliveries(read: () => Promise<WaitingDeliveries | undefined>): void
  /** Counts an attempt. */
  observeDelivery(result: Attempt['result']): void
}

/** Both metrics of a report share one read. */
const KEEP_MS = 500

/** Creates the metrics of the deliveries of alerts. */
export function createDeliveryMetrics(metrics: Metrics): DeliveryMetrics {
  const attempts = metrics.counter({
    name: 'penstock_delivery_attempts_total',
    help: 'Attempts to send alerts by their result: delivered, failed (is repeated or parked), refused by a rule, or gone (410).',
    labelNames: ['result'],
  })
  // A series that begins with its first event hides that event from rate() and increase().
  for (const result of ATTEMPT_RESULTS) attempts.inc({ result }, 0)
  return {
    observeDelivery: result => attempts.inc({ result }),
    watchDeliveries(readAll) {
      const read = shareReads(KEEP_MS, readAll)
      metrics.gauge({
        name: 'penstock_deliveries',
        help: 'Deliveries of alerts: waiting (due now), delayed (due later), and parked (not repeated any more, until a replay).',
        labelNames: ['state'],
        async collect() {
          this.reset()
          const found = await read()
          if (found === undefined) return
          this.set({ state: 'waiting' }, found.due)
          this.set({ state: 'delayed' }, found.later)
          this.set({ state: 'parked' }, found.parked)
        },
      })
      metrics.gauge({
        name: 'penstock_deliveries_oldest_due_seconds',
        help: 'Time since the oldest delivery of an alert that waits was due. 0 if none waits.',
        async collect() {
          const found = await read()
          // Without this, a gauge that was never set is 0.
          if (found === undefined) this.remove()
          else this.set(found.oldestDueSeconds)
        },
      })
    },
  }
}
