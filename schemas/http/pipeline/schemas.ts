import { z } from 'zod'
import { QUEUES, RECEIPT_KINDS } from '../../queues/names.ts'
import { instantQuerySchema } from '../filters.ts'

/** The most days of one history. */
export const PIPELINE_DAYS_MAX = 31
/** The most surfaces of a workspace whose queues are read, the newest ones. */
export const PIPELINE_SURFACES_MAX = 1_000

/** Query of GET /v3/pipeline. */
export const pipelineQuerySchema = z.object({
  from: instantQuerySchema
    .optional()
    .meta({ description: 'Start of the history, by the arrival of requests. By default 24 hours before its end.' }),
  to: instantQuerySchema.optional().meta({ description: 'End of the history, exclusive. By default now.' }),
})

const count = z.number().int().min(0)
const counts = z.array(count)
const kind = z.enum(RECEIPT_KINDS)

/** Unfinished requests of one queue. */
export const pipelineQueueSchema = z
  .strictObject({
    queue: z.enum(QUEUES),
    workBytes: z.number().min(0).meta({
      description: 'Estimated work of the unfinished requests in the queue, in decoded bytes.',
    }),
    oldestAgeSeconds: z.number().min(0).meta({
      description: 'No request that is unfinished in the queue was accepted longer ago than this. 0 if there is none.',
    }),
    kind: kind.optional().meta({
      description: 'Kind of the requests that edges put into the queue. Absent for queues that only workers write to.',
    }),
    requests: count.nullable().optional().meta({
      description:
        'Accepted requests of the kind that workers have not processed yet, in whatever queue they are. Null if they cannot be counted now.',
    }),
    settledBefore: z.iso.datetime().optional().meta({
      description:
        'Every request of the kind that was accepted before this time is stored, dead-lettered or discarded, and its receipt is final.',
    }),
  })
  .meta({ id: 'PipelineQueue', description: 'Unfinished requests of a workspace in one queue.' })
/** Unfinished requests of one queue. */
export type PipelineQueue = z.infer<typeof pipelineQueueSchema>

/** Requests of one kind over time. */
export const pipelineRateSchema = z
  .strictObject({
    kind: z.string().meta({ description: 'The kind of request, such as `traces` or `replay`.' }),
    requests: counts.meta({ description: 'Requests that workers have processed, by step of their arrival.' }),
    records: counts.meta({ description: 'Their records that were stored.' }),
    bytes: counts.meta({ description: 'Their bytes as they were sent.' }),
    deadLettered: counts.meta({ description: 'Those that became dead letters.' }),
  })
  .meta({ id: 'PipelineRate', description: 'Requests of one kind over time.' })

/** Outcomes of the requests of a time. */
export const pipelineHistorySchema = z.strictObject({
  from: z.iso.datetime().meta({ description: 'Start of the first step.' }),
  to: z.iso.datetime().meta({ description: 'End of the last step.' }),
  stepSeconds: z.number().int().min(1),
  rates: z.array(pipelineRateSchema).meta({ description: 'Kinds without a request are left out.' }),
  refused: z
    .array(z.strictObject({ kind: z.string(), status: z.number().int(), requests: count }))
    .meta({ description: 'Requests that were refused in their response, by kind and status, in whole hours.' }),
  letters: z
    .array(
      z.strictObject({
        reason: z.string(),
        dead: count.meta({ description: 'Dead letters that are not stored, also those that are being replayed.' }),
        replayed: count.meta({ description: 'Dead letters that a replay has stored.' }),
        discarded: count.meta({ description: 'Requests over the bound of dead letters, of which nothing is kept.' }),
      }),
    )
    .meta({ description: 'Requests that could not be stored, or not with all their records, most first.' }),
  purgedLetters: count.meta({ description: 'Dead letters that were purged, in whole hours.' }),
})
/** Outcomes of the requests of a time. It has no name in the document, where a reference cannot be nullable. */
export type PipelineHistory = z.infer<typeof pipelineHistorySchema>

/** Response of GET /v3/pipeline. */
export const pipelineSchema = z
  .strictObject({
    readAt: z.iso.datetime().meta({ description: 'When the queues were read, by the clock that accepts requests.' }),
    isPartial: z.boolean().meta({
      description:
        'Whether the workspace has more than 1,000 surfaces. Then `queues` has the work and the requests of the newest ones.',
    }),
    queues: z.array(pipelineQueueSchema).meta({ description: 'All queues, also those in which nothing waits.' }),
    history: pipelineHistorySchema.nullable().meta({ description: 'Null while stored data cannot be read.' }),
    unavailable: z
      .string()
      .nullable()
      .meta({ description: 'Why there is no history, and why requests that wait are not counted. Else null.' }),
  })
  .meta({ id: 'Pipeline', description: 'Unfinished requests of a workspace, and outcomes of the others.' })
/** Response of GET /v3/pipeline. */
export type Pipeline = z.infer<typeof pipelineSchema>
