import { z } from 'zod'
import { PUBLIC_KEY, READER } from '../credentials.ts'
import { EXAMPLE } from '../example-values.ts'
import type { Operation } from '../operation.ts'
import { receiptsProblems } from '../problem-sets.ts'
import { ANSWERS } from './examples.ts'
import { receiptAnswerSchema, receiptIdSchema } from './schemas.ts'

export const readReceipt: Operation = {
  operationId: 'readReceipt',
  method: 'GET',
  path: '/v3/receipts/:receiptId',
  service: 'gateway',
  tag: 'telemetry',
  summary: 'What became of an accepted request',
  description:
    'A key sees the receipts of its own surface, a token those of its workspace; with any permission to read. Known for as long as data is retained.',
  credentials: [...PUBLIC_KEY, 'secretKey', ...READER],
  cors: true,
  parameters: {
    path: z.object({
      receiptId: receiptIdSchema.meta({
        description: 'As the header `x-receipt-id` of the request’s answer said.',
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
