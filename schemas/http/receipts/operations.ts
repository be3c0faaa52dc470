import { z } from 'zod'
import { PUBLIC_KEY, READER } from '../credentials.ts'
import { EXAMPLE } from '../example-values.ts'
import type { Operation } from '../operation.ts'
import { receiptsProblems } from '../problem-sets.ts'
import { ANSWERS } from './examples.ts'
import { receiptAnswerSchema, receiptIdSchema } from './schemas.ts'

/** Reads a receipt (docs/api/receipts.md#receipts). */
export const readReceipt: Operation = {
  operationId: 'readReceipt',
  method: 'GET',
  path: '/v3/receipts/:receiptId',
  service: 'gateway',
  tag: 'telemetry',
  summary: 'Read the outcome of an accepted request',
  description:
    'A key may read the receipts of its own surface, a token with any read permission those of its workspace. A receipt is kept as long as the data.',
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
