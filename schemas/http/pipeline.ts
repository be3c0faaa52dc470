import { z } from 'zod'
import { ADMITTED_QUEUES, isAdmitted, QUEUES } from '../queues/names.ts'
import { READER } from './credentials.ts'
import { instantQuerySchema } from './filters.ts'
import type { PermittedOperation } from './operation.ts'
import { callerProblems } from './problem-sets.ts'

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
const kind = z.enum(ADMITTED_QUEUES)

/** Unfinished requests of one queue. */
const pipelineQueueSchema = z
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
const pipelineRateSchema = z
  .strictObject({
    kind: z.string().meta({ description: 'The kind of request, such as `traces` or `replay`.' }),
    requests: counts.meta({ description: 'Requests that workers have processed, by step of their arrival.' }),
    records: counts.meta({ description: 'Their records that were stored.' }),
    bytes: counts.meta({ description: 'Their bytes as they were sent.' }),
    deadLettered: counts.meta({ description: 'Those that became dead letters.' }),
  })
  .meta({ id: 'PipelineRate', description: 'Requests of one kind over time.' })

/** Outcomes of the requests of a time. */
const pipelineHistorySchema = z.strictObject({
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

const readAt = '2026-09-21T14:13:22.004Z'
const IN_QUEUE_OF_SPANS = { workBytes: 41_204, oldestAgeSeconds: 0.302 }

/** Responses to the examples of the operations, by operation. */
const ANSWERS: { readonly readPipeline: Pipeline } = {
  readPipeline: {
    readAt,
    isPartial: false,
    queues: QUEUES.map(queue => {
      const isBusy = queue === 'traces'
      return {
        queue,
        ...(isBusy ? IN_QUEUE_OF_SPANS : { workBytes: 0, oldestAgeSeconds: 0 }),
        ...(isAdmitted(queue) && {
          kind: queue,
          requests: isBusy ? 3 : 0,
          settledBefore: isBusy ? '2026-09-21T14:13:21.702Z' : readAt,
        }),
      }
    }),
    history: {
      from: '2026-09-21T14:10:00.000Z',
      to: '2026-09-21T14:14:00.000Z',
      stepSeconds: 60,
      rates: [
        {
          kind: 'traces',
          requests: [300, 304, 298, 302],
          records: [15_012, 15_020, 14_987, 15_112],
          bytes: [2_203_011, 2_210_004, 2_190_118, 2_208_911],
          deadLettered: [0, 0, 1, 0],
        },
      ],
      refused: [{ kind: 'traces', status: 429, requests: 12 }],
      letters: [{ reason: 'refused_by_clickhouse', dead: 1, replayed: 0, discarded: 0 }],
      purgedLetters: 0,
    },
    unavailable: null,
  },
}

/** Reads what waits of the requests of a workspace, and what became of the others (docs/api/receipts.md#pipeline). */
export const readPipeline: PermittedOperation = {
  operationId: 'readPipeline',
  method: 'GET',
  path: '/v3/pipeline',
  service: 'api-analytics',
  tag: 'telemetry',
  summary: 'Read what waits in each queue, rates over time, refusals by status and dead letters by reason',
  description: 'Returns the queues also while stored data cannot be read. Then `history` is null.',
  credentials: READER,
  permission: 'org:telemetry:read',
  parameters: { query: pipelineQuerySchema },
  success: {
    status: 200,
    description: 'The pipeline of the workspace.',
    contents: { 'application/json': { schema: pipelineSchema, example: ANSWERS.readPipeline } },
  },
  problems: callerProblems,
}
