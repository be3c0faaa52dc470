import type { Problem } from '../../schemas/http/problems.ts'
import type { RequestSurface } from '../admission/surface-share.ts'
import type { FrameSink } from '../commit/frame-sink.ts'

/**
 * Decides on the head of a request, before its body is read. Returns INGEST_BACKPRESSURE when the surface is over its share
 * of the queue. A body that is announced with more than `limitBytes` is refused for its size later, because the order of
 * checks is fixed (docs/api/requests.md#order-of-checks).
 */
export function refuseHead(
  sink: Pick<FrameSink, 'refuse'>,
  surface: RequestSurface,
  contentLength: number | undefined,
  limitBytes: number,
): Problem | undefined {
  if (contentLength !== undefined && contentLength > limitBytes) return undefined
  return sink.refuse(surface, contentLength)
}
