import { z } from 'zod'

/** The header in which a request that was accepted gets the id of its receipt. */
export const RECEIPT_HEADER = 'x-receipt-id'

/** What kinds of requests have receipts. The place in this list stands in every id: kinds are only ever added, at the end. */
export const RECEIPT_KINDS = [
  'traces',
  'logs',
  'metrics',
  'sessions',
  'replay',
  'source-maps',
  'completions',
  'build-reports',
] as const
export type ReceiptKind = (typeof RECEIPT_KINDS)[number]

/** `shared/ids/receipt.ts` says what it is made of. */
export const receiptIdSchema = z.string().regex(/^rct_[a-z2-7]{44}_[\w.!~*'()%-]{1,765}$/)

/**
 * GET /v3/receipts/{receiptId}: what became of an accepted request.
 *
 * - queued: it is on disk, and none of the others yet
 * - stored: all of it but the records that break a rule of their own; the bytes of a repeated replay chunk were before
 * - dead_lettered: it could not be stored, and is kept as it was sent
 * - refused: its answer said why, and nothing of it is kept (a source map that is none, a completion without its maps)
 */
export const RECEIPT_STATUSES = ['queued', 'stored', 'dead_lettered', 'refused'] as const
export type ReceiptStatus = (typeof RECEIPT_STATUSES)[number]

export const receiptSchema = z
  .strictObject({
    id: receiptIdSchema,
    status: z.enum(RECEIPT_STATUSES),
    kind: z.enum(RECEIPT_KINDS).meta({ description: 'What was sent.' }),
    surfaceId: z.string(),
    receivedAt: z.iso.datetime().meta({
      description:
        'When it was received, or at most a few seconds before: when the first was that it was written with.',
    }),
    storedAt: z.iso.datetime().optional().meta({ description: 'When it was stored, of one that is.' }),
    reason: z
      .string()
      .optional()
      .meta({ description: 'Why it was dead-lettered or refused: a name, and details behind a colon for some.' }),
    objectKey: z.string().optional().meta({ description: 'Where a dead-lettered one is kept in the object store.' }),
  })
  .meta({ id: 'Receipt', description: 'What became of an accepted request. What is absent is left out.' })
export type Receipt = z.infer<typeof receiptSchema>

export const receiptAnswerSchema = z.strictObject({ receipt: receiptSchema })
export type ReceiptAnswer = z.infer<typeof receiptAnswerSchema>
