import { z } from 'zod'
import { CALLED_KINDS } from '../../records/alerts.ts'
import { READER } from '../credentials.ts'
import { EXAMPLE, EXAMPLE_TIMES } from '../example-values.ts'
import { exactObject } from '../fields.ts'
import { findingIdSchema } from '../findings/schemas.ts'
import type { PermittedOperation } from '../operation.ts'
import { callerProblems } from '../problem-sets.ts'
import { alertRuleSchema } from './rules.ts'

/** Most calls of an answer. */
export const TRIED_CALLS_MAX = 50

const BODY_BYTES = 64 * 1024

/** Body of POST /v3/alerts/try. */
export const tryRuleSchema = exactObject({ rule: alertRuleSchema }).meta({ id: 'TryAlertRuleRequest' })

const kind = z.enum(CALLED_KINDS)

/** Response of POST /v3/alerts/try. */
export const trialSchema = z
  .strictObject({
    from: z.iso.datetime(),
    to: z.iso.datetime(),
    events: z
      .int()
      .min(0)
      .meta({ description: 'How many events would have called. Webhooks and PagerDuty get a message for each.' }),
    messages: z.int().min(0).meta({
      description:
        'How many messages Slack, Teams and e-mail would have got, by `everyMinutes`, `quietHours` and what one message holds.',
    }),
    calls: z
      .array(
        z
          .strictObject({
            at: z.iso.datetime(),
            kind,
            title: z.string(),
            findingId: findingIdSchema.optional(),
            resolved: z.boolean().meta({ description: 'Whether a condition has ended.' }),
            value: z.number().optional(),
            unit: z.string().optional(),
          })
          .meta({ id: 'TriedCall' }),
      )
      .max(TRIED_CALLS_MAX)
      .meta({ description: `The latest events, at most ${TRIED_CALLS_MAX}, the latest first.` }),
    unknown: z
      .array(z.strictObject({ kind, reason: z.string() }).meta({ id: 'UntriedKind' }))
      .meta({ description: 'Kinds of the rule of which the past is not known, or not all of it.' }),
  })
  .meta({ id: 'AlertTrial' })
/** Response of POST /v3/alerts/try. */
export type Trial = z.infer<typeof trialSchema>

/** Tries a rule (docs/api/alerts.md#try). */
export const tryRule: PermittedOperation = {
  operationId: 'tryAlertRule',
  method: 'POST',
  path: '/v3/alerts/try',
  service: 'operation',
  tag: 'alerts',
  summary: 'Try a rule of alerts on the last seven days',
  description: 'Changes nothing and sends nothing.',
  permission: 'org:telemetry:read',
  credentials: READER,
  body: {
    limitBytes: BODY_BYTES,
    contents: {
      'application/json': {
        schema: tryRuleSchema,
        example: { rule: { name: 'shop', kinds: ['finding.created'], services: [EXAMPLE.serviceName] } },
      },
    },
  },
  success: {
    status: 200,
    description: 'The events that the rule would have called for.',
    contents: {
      'application/json': {
        schema: trialSchema,
        example: {
          from: EXAMPLE_TIMES.createdAt,
          to: EXAMPLE_TIMES.createdAt,
          events: 1,
          messages: 1,
          calls: [
            {
              at: EXAMPLE_TIMES.createdAt,
              kind: 'finding.created',
              title: 'New finding in shop: TypeError: item is undefined',
              findingId: EXAMPLE.findingId,
              resolved: false,
            },
          ],
          unknown: [],
        },
      },
    },
  },
  problems: callerProblems,
}
