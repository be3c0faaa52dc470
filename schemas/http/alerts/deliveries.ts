import { z } from 'zod'
import { ALERT_CHARACTERS, ATTEMPT_RESULTS, DEFAULT_ALERT_RULES } from '../../records/alerts.ts'
import { MANAGER, READER } from '../credentials.ts'
import { EXAMPLE_TIMES } from '../example-values.ts'
import { exactObject, textOf } from '../fields.ts'
import type { PermittedOperation } from '../operation.ts'
import { callerProblems } from '../problem-sets.ts'
import { EXAMPLE_RECEIVER } from './receivers.ts'

/** Most attempts of a list. */
export const LISTED_ATTEMPTS_MAX = 1_000

/** Body of POST /v3/alerts/test. */
export const testReceiverSchema = exactObject({
  receiver: textOf(1, ALERT_CHARACTERS).meta({ description: 'The name of a receiver.' }),
}).meta({ id: 'TestReceiverRequest' })

const outcomeShape = {
  result: z.enum(ATTEMPT_RESULTS).meta({
    description: '`failed` is repeated, `refused` never is, and `gone` disables the receiver.',
  }),
  status: z.int().optional().meta({ description: 'Status of HTTP, or reply code of SMTP.' }),
  reason: z.string().optional(),
  answer: z.string().optional().meta({ description: 'The first 1,000 characters of the answer.' }),
  durationMs: z.number().min(0),
}

/** Response of POST /v3/alerts/test. */
export const testedSchema = z.strictObject(outcomeShape).meta({ id: 'TestedReceiver' })
/** Response of POST /v3/alerts/test. */
export type Tested = z.infer<typeof testedSchema>

/** Response of GET /v3/alerts/deliveries. */
export const deliveriesAnswerSchema = z
  .strictObject({
    attempts: z.array(
      z
        .strictObject({
          deliveryId: z.string(),
          at: z.iso.datetime(),
          receiverId: z.string(),
          receiverName: z.string(),
          ruleName: z.string(),
          events: z.array(z.strictObject({ id: z.string(), type: z.string(), findingId: z.string().optional() })),
          attempt: z.int().min(1).meta({ description: 'Counts from 1.' }),
          ...outcomeShape,
          nextAttemptAt: z.iso.datetime().optional().meta({ description: 'Absent if it is not repeated.' }),
        })
        .meta({ id: 'DeliveryAttempt' }),
    ),
  })
  .meta({ id: 'DeliveryAttempts' })
/** Response of GET /v3/alerts/deliveries. */
export type DeliveriesAnswer = z.infer<typeof deliveriesAnswerSchema>

const SERVICE = { service: 'operation', tag: 'alerts' } as const

/** Sends a test (docs/api/alerts.md#test). */
export const testReceiver: PermittedOperation = {
  operationId: 'testReceiver',
  method: 'POST',
  path: '/v3/alerts/test',
  ...SERVICE,
  summary: 'Send a test to a receiver of alerts',
  description: 'Makes one attempt, and states how it ended.',
  permission: 'org:telemetry:admin',
  credentials: MANAGER,
  body: {
    limitBytes: 4 * 1024,
    contents: { 'application/json': { schema: testReceiverSchema, example: { receiver: 'on-call' } } },
  },
  success: {
    status: 200,
    description: 'How the attempt ended.',
    contents: {
      'application/json': {
        schema: testedSchema,
        example: { result: 'failed', reason: 'the name of the receiver has no address', durationMs: 12 },
      },
    },
  },
  problems: callerProblems,
}

/** Lists attempts (docs/api/alerts.md#deliveries). */
export const listDeliveries: PermittedOperation = {
  operationId: 'listDeliveries',
  method: 'GET',
  path: '/v3/alerts/deliveries',
  ...SERVICE,
  summary: 'List the last attempts to send alerts',
  description: `At most ${LISTED_ATTEMPTS_MAX}, the latest first. They are kept for 30 days.`,
  permission: 'org:telemetry:read',
  credentials: READER,
  success: {
    status: 200,
    description: 'The attempts.',
    contents: {
      'application/json': {
        schema: deliveriesAnswerSchema,
        example: {
          attempts: [
            {
              deliveryId: 'evt_a2b3c4d5e6f7a2b3c4d5e6f7a2_rcv_5f2c0a9b1e3d4c6a7f80',
              at: EXAMPLE_TIMES.createdAt,
              receiverId: EXAMPLE_RECEIVER.id,
              receiverName: EXAMPLE_RECEIVER.name,
              ruleName: DEFAULT_ALERT_RULES[0]?.name ?? '',
              events: [
                { id: 'evt_a2b3c4d5e6f7a2b3c4d5e6f7a2', type: 'finding.created', findingId: `fnd_${'a'.repeat(26)}` },
              ],
              attempt: 1,
              result: 'delivered',
              status: 204,
              durationMs: 84,
            },
          ],
        },
      },
    },
  },
  problems: callerProblems,
}
