import { z } from 'zod'
import { ALERT_CHARACTERS, CHANNELS } from '../../records/alerts.ts'
import { EXAMPLE_TIMES } from '../example-values.ts'
import { emailSchema, exactObject, listOf, textOf } from '../fields.ts'

const URL_CHARACTERS = 2_048
/** Most addresses of a receiver of e-mail. */
const ADDRESSES_MAX = 20

const text = textOf(1, ALERT_CHARACTERS)
const url = z.url({ protocol: /^https?$/, error: 'must be a URL that begins with https://' }).max(URL_CHARACTERS)
const channel = z.enum(CHANNELS)

const NEEDS = { webhook: 'url', slack: 'url', teams: 'url', pagerduty: 'routingKey', email: 'to' } as const

/** A receiver in a request. */
export const receiverSchema = exactObject({
  name: text.meta({ description: 'Unique among the receivers. One with a new name is a new receiver.' }),
  channel,
  url: url.optional().meta({ description: 'For webhook, slack and teams. A known receiver keeps its own by default.' }),
  routingKey: textOf(1, 64)
    .optional()
    .meta({ description: 'For pagerduty: the integration key of an Events API v2 integration.' }),
  to: listOf(emailSchema, ADDRESSES_MAX, 'must be a list of addresses')
    .refine(to => to.length > 0, 'must not be empty')
    .optional()
    .meta({ description: 'For email.' }),
  rotateSecret: z.boolean().optional().meta({
    description: 'For webhook: makes a new secret, and signs with both until the next one is made.',
  }),
  actions: z.boolean().optional().meta({
    description:
      'Whether messages have links by which anyone who reads them can acknowledge, resolve or ignore a finding. By default true; a known receiver keeps its own.',
  }),
  signature: z.enum(['hmac', 'ed25519']).optional().meta({
    description:
      'For webhook. With `ed25519` the receiver needs no secret. `hmac` by default, and a known one keeps its own.',
  }),
  disabled: z
    .boolean()
    .optional()
    .meta({ description: 'Whether nothing is sent to it. A receiver that answers 410 is disabled.' }),
}).superRefine((receiver, context) => {
  for (const field of ['url', 'routingKey', 'to'] as const) {
    if (receiver[field] !== undefined && field !== NEEDS[receiver.channel])
      context.addIssue({
        code: 'custom',
        path: [field],
        message: `does not belong to a receiver of the channel ${receiver.channel}`,
      })
  }
  if (receiver.rotateSecret && receiver.channel !== 'webhook')
    context.addIssue({ code: 'custom', path: ['rotateSecret'], message: 'only a webhook has a secret' })
  if (receiver.signature !== undefined && receiver.channel !== 'webhook')
    context.addIssue({ code: 'custom', path: ['signature'], message: 'only a webhook is signed' })
})
/** A receiver in a request. */
export type RequestedReceiver = z.infer<typeof receiverSchema>
/** The field that a new receiver of a channel must have. */
export const targetFieldOf = (of: RequestedReceiver['channel']): (typeof NEEDS)[keyof typeof NEEDS] => NEEDS[of]

/** A receiver in an answer. */
export const shownReceiverSchema = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    channel,
    address: z.string().meta({ description: 'The part of its target that may be shown.' }),
    createdAt: z.iso.datetime(),
    actions: z.boolean().optional().meta({ description: 'False if messages have no links that change findings.' }),
    disabled: z.strictObject({ at: z.iso.datetime(), reason: z.string() }).optional(),
    publicKey: z.string().optional().meta({
      description: 'With which signatures of Ed25519 are verified (`whpk_…`). Such a webhook has no secret.',
    }),
    secret: z.string().optional().meta({
      description: 'The secret of a webhook, in the response to the request that made it, and never again.',
    }),
  })
  .meta({ id: 'AlertReceiver' })

/** A receiver of the examples. */
export const EXAMPLE_RECEIVER = {
  id: 'rcv_5f2c0a9b1e3d4c6a7f80',
  name: 'on-call',
  channel: 'webhook' as const,
  address: 'https://hooks.example/penstock',
  createdAt: EXAMPLE_TIMES.createdAt,
}
