import { QUEUES, RECEIPT_KINDS } from '../../queues/names.ts'
import { EXAMPLE } from '../example-values.ts'
import type { Watermark, WatermarksPage } from './schemas.ts'

const readAt = '2026-09-21T14:13:22.004Z'
const settled = RECEIPT_KINDS.map(kind => [kind, kind === 'traces' ? '2026-09-21T14:13:21.702Z' : readAt])
const ages = QUEUES.map(queue => [queue, queue === 'spans' ? 0.302 : 0])

/** Responses to the examples of the operations, by operation. */
export const ANSWERS: { readonly listWatermarks: WatermarksPage } = {
  listWatermarks: {
    readAt,
    watermarks: [
      {
        surfaceId: EXAMPLE.surfaceId,
        settledBefore: Object.fromEntries(settled) as Watermark['settledBefore'],
        oldestAgeSeconds: Object.fromEntries(ages) as Watermark['oldestAgeSeconds'],
      },
    ],
    nextCursor: null,
  },
}
