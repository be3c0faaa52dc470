import { z } from 'zod'
import { ADMITTED_QUEUES } from '../queues/names.ts'
import { PUBLIC_KEY, READER } from './credentials.ts'
import { EXAMPLE, EXAMPLE_TIMES } from './example-values.ts'
import type { Operation } from './operation.ts'
import { droppedSchema } from './privacy/dropping.ts'
import { receiptsProblems } from './problem-sets.ts'

/** Response header with the id of the receipt of an accepted request. */
export const RECEIPT_HEADER = 'x-receipt-id'

/** Id of a receipt; `shared/ids/receipt.ts` defines its parts. */
export const receiptIdSchema = z.string().regex(/^rct_[a-z2-7]{44}_[A-Za-z0-9_.!~*'()%-]{1,765}$/)

/**
 * Outcomes of an accepted request (docs/api/receipts.md#receipts).
 *
 * - queued: on disk, not processed yet
 * - lost_or_unknown: accepted before the Redis of the queues lost its data, and not stored: it is lost, unless a server that
 *   has kept its data still has it
 * - stored: all records are stored, except those that `rejected` and `dropped` count; also a repeated replay chunk
 * - dead_lettered: could not be stored, and is kept as it was sent
 * - discarded: could not be stored, and is not kept, because its surface had too many dead letters on that day
 * - refused: the response stated why, and nothing is kept (an invalid source map, a completion without its maps)
 */
const RECEIPT_STATUSES = ['queued', 'lost_or_unknown', 'stored', 'dead_lettered', 'discarded', 'refused'] as const
/** Outcome of an accepted request. */
export type ReceiptStatus = (typeof RECEIPT_STATUSES)[number]

/** A receipt. */
const receiptSchema = z
  .strictObject({
    id: receiptIdSchema,
    status: z.enum(RECEIPT_STATUSES),
    kind: z.enum(ADMITTED_QUEUES).meta({ description: 'The kind of the request.' }),
    surfaceId: z.string(),
    receivedAt: z.iso.datetime().meta({
      description: 'When the first request of its group commit was received, at most a few seconds before this one.',
    }),
    storedAt: z.iso.datetime().optional(),
    reason: z.string().optional().meta({
      description:
        'Why the request was dead-lettered, discarded or refused: a name, for some followed by a colon and details.',
    }),
    rejected: z
      .array(
        z.strictObject({
          reason: z.string().meta({ description: 'The rule that the records break.' }),
          count: z.number().int().min(1).meta({ description: 'The number of records.' }),
        }),
      )
      .optional()
      .meta({ description: 'The records of the request that are not stored, by reason.' }),
    leftOut: z
      .array(
        z.strictObject({
          field: z.string(),
          reason: z.string().meta({ description: 'The rule that the field breaks.' }),
        }),
      )
      .optional()
      .meta({ description: 'The fields that the stored record lacks, because they break their rule.' }),
    dropped: droppedSchema.optional(),
    objectKey: z.string().optional().meta({
      description:
        'The key of the object that contains the dead letter of the request. A request of which some records are not stored is a dead letter too.',
    }),
    history: z
      .array(
        z.strictObject({
          status: z.enum([...RECEIPT_STATUSES, 'replayed']),
          at: z.iso.datetime(),
          reason: z.string().optional(),
        }),
      )
      .optional()
      .meta({ description: 'Each step of the request. Present once its dead letter was replayed.' }),
  })
  .meta({ id: 'Receipt', description: 'The outcome of an accepted request. Absent fields are left out.' })
/** A receipt. */
export type Receipt = z.infer<typeof receiptSchema>

/** Response of GET /v3/receipts/{receiptId}. */
export const receiptAnswerSchema = z.strictObject({ receipt: receiptSchema })
/** Response of GET /v3/receipts/{receiptId}. */
export type ReceiptAnswer = z.infer<typeof receiptAnswerSchema>

const { surfaceId } = EXAMPLE

/** Responses to the examples of the operations, by operation. */
const ANSWERS = {
  readReceipt: {
    receipt: {
      id: EXAMPLE.receiptId,
      status: 'stored',
      kind: 'sessions',
      surfaceId,
      receivedAt: EXAMPLE_TIMES.receivedAt,
      storedAt: '2026-09-21T14:13:21.577Z',
    },
  },
} as const

/** Reads a receipt (docs/api/receipts.md#receipts). */
export const readReceipt: Operation = {
  operationId: 'readReceipt',
  method: 'GET',
  path: '/v3/receipts/:receiptId',
  service: 'gateway',
  tag: 'telemetry',
  summary: 'Read the outcome of an accepted request',
  description:
    'A key of a surface may read the receipts of that surface, a token or an API key with any read permission those of its workspace. A receipt is kept as long as the data.',
  credentials: [...PUBLIC_KEY, 'secretKey', ...READER],
  cors: true,
  parameters: {
    path: z.object({
      receiptId: receiptIdSchema.meta({
        description: 'The value of the header `x-receipt-id` in the response to the request.',
        example: EXAMPLE.receiptId,
      }),
    }),
  },
  success: {
    status: 200,
    description: 'The receipt.',
    contents: { 'application/json': { schema: receiptAnswerSchema, example: ANSWERS.readReceipt } },
  },
  problems: receiptsProblems,
}
