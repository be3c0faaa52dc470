import { LATENCY_BUCKETS_SECONDS, type Metrics } from '../runtime/metrics.ts'
import type { ObserveCall } from './types.ts'

const OPERATIONS = ['get', 'head', 'list', 'put', 'put if absent', 'copy', 'delete']
const OUTCOMES = ['ok', 'refused', 'failed']

/** Returns an observer of the calls of a client. Operations are named by this room, so their number is fixed. */
export function createCallObserver(metrics: Metrics): ObserveCall {
  const calls = metrics.counter({
    name: 'penstock_object_store_calls_total',
    help: 'Calls of the object store. Outcome refused: the call itself is wrong; failed: it may succeed later.',
    labelNames: ['operation', 'outcome'],
  })
  const seconds = metrics.histogram({
    name: 'penstock_object_store_call_seconds',
    help: 'Time of a call of the object store, successful or not. A body that is streamed is read later.',
    labelNames: ['operation'],
    buckets: LATENCY_BUCKETS_SECONDS,
  })
  // A series that begins with its first event hides that event from rate() and increase().
  for (const operation of OPERATIONS) for (const outcome of OUTCOMES) calls.inc({ operation, outcome }, 0)
  return (operation, outcome, durationMs) => {
    calls.inc({ operation, outcome })
    seconds.observe({ operation }, durationMs / 1_000)
  }
}
