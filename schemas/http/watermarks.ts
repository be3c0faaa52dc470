import { z } from 'zod'
import { ADMITTED_QUEUES, QUEUES } from '../queues/names.ts'
import { READER } from './credentials.ts'
import { EXAMPLE } from './example-values.ts'
import type { PermittedOperation } from './operation.ts'
import { nextCursorSchema, pageQuerySchema } from './page.ts'
import { callerProblems } from './problem-sets.ts'

/** Returns an object with these members, all of the same schema. */
function membersOf<K extends string, S extends z.ZodType>(names: readonly K[], schema: S) {
  return z.strictObject(Object.fromEntries(names.map(name => [name, schema])) as Record<K, S>)
}

/** The watermarks of one surface (docs/api/receipts.md#watermarks). */
const watermarkSchema = z
  .strictObject({
    surfaceId: z.string(),
    settledBefore: membersOf(ADMITTED_QUEUES, z.iso.datetime()).meta({
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

const readAt = '2026-09-21T14:13:22.004Z'
const settled = ADMITTED_QUEUES.map(kind => [kind, kind === 'traces' ? '2026-09-21T14:13:21.702Z' : readAt])
const ages = QUEUES.map(queue => [queue, queue === 'traces' ? 0.302 : 0])

/** Responses to the examples of the operations, by operation. */
const ANSWERS: { readonly listWatermarks: WatermarksPage } = {
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

/** Lists the watermarks of the surfaces (docs/api/receipts.md#watermarks). */
export const listWatermarks: PermittedOperation = {
  operationId: 'listWatermarks',
  method: 'GET',
  path: '/v3/watermarks',
  service: 'api-analytics',
  tag: 'telemetry',
  summary: 'List what is settled of the requests of each surface, newest surface first',
  description: 'Everything that a surface had accepted before its watermark is stored, dead-lettered or discarded.',
  credentials: READER,
  permission: 'org:telemetry:read',
  parameters: { query: pageQuerySchema },
  success: {
    status: 200,
    description: 'A page of watermarks.',
    contents: { 'application/json': { schema: watermarksPageSchema, example: ANSWERS.listWatermarks } },
  },
  problems: callerProblems,
}
