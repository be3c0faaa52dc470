import { z } from 'zod'
import { ALERT_RULES_MAX, CALLED_KINDS, DEFAULT_ALERT_RULES, RECEIVERS_MAX } from '../../records/alerts.ts'
import { REVISION_MAX } from '../../records/finding-rules.ts'
import { MANAGER, READER } from '../credentials.ts'
import { EXAMPLE_TIMES } from '../example-values.ts'
import { exactObject, listOf } from '../fields.ts'
import type { PermittedOperation } from '../operation.ts'
import { callerProblems } from '../problem-sets.ts'
import { EXAMPLE_RECEIVER, receiverSchema, shownReceiverSchema } from './receivers.ts'
import { alertRuleSchema } from './rules.ts'

const BODY_BYTES = 256 * 1024

const revision = z.int().min(0).max(REVISION_MAX)

const named = (things: readonly { readonly name: string }[]) =>
  new Set(things.map(({ name }) => name)).size === things.length

/** Body of PUT /v3/alerts. */
export const replaceAlertsSchema = exactObject({
  revision: revision.meta({ description: 'The revision of what is replaced.' }),
  receivers: listOf(receiverSchema, RECEIVERS_MAX, 'must be a list of receivers').refine(
    named,
    'must have names that differ',
  ),
  rules: listOf(alertRuleSchema, ALERT_RULES_MAX, 'must be a list of rules').refine(
    named,
    'must have names that differ',
  ),
})
  .superRefine(({ receivers, rules }, context) => {
    const known = new Set(receivers.map(({ name }) => name))
    for (const [i, rule] of rules.entries()) {
      const unknown = rule.receivers?.find(name => !known.has(name))
      if (unknown !== undefined)
        context.addIssue({
          code: 'custom',
          path: ['rules', i, 'receivers'],
          message: 'must name receivers of the list',
        })
    }
  })
  .meta({ id: 'ReplaceAlertsRequest' })

/** A rule that cannot be measured. */
const failingRuleSchema = z.strictObject({
  rule: z.string().meta({ description: 'The name of the rule.' }),
  kind: z.enum(CALLED_KINDS),
  since: z.iso.datetime(),
  reason: z.string(),
})

/** Response of GET and PUT /v3/alerts. */
export const alertsAnswerSchema = z
  .strictObject({
    revision: revision.meta({ description: 'Grows with each change. 0 if nothing was ever changed.' }),
    changedAt: z.iso.datetime().optional(),
    receivers: z.array(shownReceiverSchema),
    rules: z.array(alertRuleSchema),
    failing: z
      .array(failingRuleSchema)
      .optional()
      .meta({ description: 'Rules that cannot be measured now, and call no receiver. Absent if all can.' }),
  })
  .meta({ id: 'Alerts' })
/** Response of GET and PUT /v3/alerts. */
export type AlertsAnswer = z.infer<typeof alertsAnswerSchema>

const rules = DEFAULT_ALERT_RULES.map(({ name, kinds }) => ({ name, kinds: [...kinds] }))
const SERVICE = { service: 'operation', tag: 'alerts' } as const

/** Reads receivers and rules (docs/api/alerts.md). */
export const readAlerts: PermittedOperation = {
  operationId: 'readAlerts',
  method: 'GET',
  path: '/v3/alerts',
  ...SERVICE,
  summary: 'Read the receivers of alerts, and the rules that call them',
  permission: 'org:telemetry:read',
  credentials: READER,
  success: {
    status: 200,
    description: 'Receivers and rules.',
    contents: { 'application/json': { schema: alertsAnswerSchema, example: { revision: 0, receivers: [], rules } } },
  },
  problems: callerProblems,
}

/** Replaces receivers and rules (docs/api/alerts.md). */
export const replaceAlerts: PermittedOperation = {
  operationId: 'replaceAlerts',
  method: 'PUT',
  path: '/v3/alerts',
  ...SERVICE,
  summary: 'Replace the receivers of alerts, and the rules that call them',
  description:
    'A receiver is known by its name: without a target it keeps its own, with its secret. Refused with 409 if both have another revision than the one that was read.',
  permission: 'org:telemetry:admin',
  credentials: MANAGER,
  body: {
    limitBytes: BODY_BYTES,
    contents: {
      'application/json': {
        schema: replaceAlertsSchema,
        example: {
          revision: 0,
          receivers: [{ name: 'on-call', channel: 'webhook', url: 'https://hooks.example/penstock' }],
          rules,
        },
      },
    },
  },
  success: {
    status: 200,
    description: 'Receivers and rules after the change. New webhooks have their secret.',
    contents: {
      'application/json': {
        schema: alertsAnswerSchema,
        example: {
          revision: 28_512_000,
          changedAt: EXAMPLE_TIMES.createdAt,
          receivers: [EXAMPLE_RECEIVER],
          rules,
        },
      },
    },
  },
  problems: [...callerProblems, { code: 'REQUEST_INVALID', status: 409 }],
}
