import { z } from 'zod'
import { QUEUES, RECEIPT_KINDS } from '../../queues/names.ts'
import { nextCursorSchema } from '../page.ts'

/** Returns an object with these members, all of the same schema. */
function membersOf<K extends string, S extends z.ZodType>(names: readonly K[], schema: S) {
  return z.strictObject(Object.fromEntries(names.map(name => [name, schema])) as Record<K, S>)
}

/** The watermarks of one surface (docs/api/receipts.md#watermarks). */
export const watermarkSchema = z
  .strictObject({
    surfaceId: z.string(),
    settledBefore: membersOf(RECEIPT_KINDS, z.iso.datetime()).meta({
      description:
        'By kind of request: everything that was accepted before this time is stored, dead-lettered or discarded, and its receipt is final.',
    }),
    oldestAgeSeconds: membersOf(QUEUES, z.number().min(0)).meta({
      description:
        'By queue: no request of the surface that is unfinished there was accepted longer ago than this. 0 if there is none.',
    }),
  })
  .meta({ id: 'Watermark', description: 'What is settled of the requests of one surface.' })
/** The watermarks of one surface. */
export type Watermark = z.infer<typeof watermarkSchema>

/** Response of GET /v3/watermarks. */
export const watermarksPageSchema = z.strictObject({
  readAt: z.iso.datetime().meta({ description: 'When the watermarks were read, by the clock that accepts requests.' }),
  watermarks: z.array(watermarkSchema),
  nextCursor: nextCursorSchema,
})
/** Response of GET /v3/watermarks. */
export type WatermarksPage = z.infer<typeof watermarksPageSchema>
