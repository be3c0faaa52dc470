import { SECOND_MS } from '../../schemas/units.ts'
import { lookUpHost } from './look-up-host.ts'
import type { DeliveryOutcome } from './outcome.ts'
import { type PostRequest, post } from './post.ts'
import type { AllowedReceivers } from './receiver-address.ts'
import { type Mail, type MailDeps, sendMail } from './send-mail.ts'
import { type WebhookMessage, webhookHeaders } from './standard-webhooks.ts'

/** One delivery of an alert, with all that its channel needs. Secrets are opened (`sealing.ts`). */
export type Delivery =
  | ({ readonly channel: 'webhook'; readonly url: string } & WebhookMessage)
  /** A service with an address or a key of its own, such as Slack or PagerDuty. */
  | ({ readonly channel: 'service' } & PostRequest)
  | ({ readonly channel: 'email' } & Mail)

/** Dependencies of {@link send}. */
export interface SendDeps {
  readonly allowed: AllowedReceivers
  /** Without it, mails are refused. */
  readonly mail: Omit<MailDeps, 'mailDeadlineMs'> | undefined
  readonly now: () => number
}

/** Time for one attempt. Senders of the specification wait 15 to 30 s; a slot that waits is one that others lack. */
const POST_DEADLINE_MS = 10 * SECOND_MS
/** Mail servers look for spam before they accept a mail. */
const MAIL_DEADLINE_MS = 30 * SECOND_MS

/**
 * Makes one attempt to send a delivery. Never throws for what a receiver does: the outcome describes it. Throws a PermanentError
 * for an id or a secret that this service has not made.
 */
export function send(deps: SendDeps, delivery: Delivery): Promise<DeliveryOutcome> {
  const { allowed, now } = deps
  const postDeps = { allowed, lookup: (host: string) => lookUpHost(allowed, host), deadlineMs: POST_DEADLINE_MS, now }
  switch (delivery.channel) {
    case 'webhook': {
      const { url, body, secrets } = delivery
      return post(postDeps, { url, body, secrets, headers: webhookHeaders(delivery, now()) })
    }
    case 'service':
      return post(postDeps, delivery)
    case 'email':
      if (deps.mail === undefined)
        return Promise.resolve({ kind: 'refused', reason: 'this installation sends no mail', durationMs: 0 })
      return sendMail({ ...deps.mail, mailDeadlineMs: MAIL_DEADLINE_MS }, delivery)
  }
}
