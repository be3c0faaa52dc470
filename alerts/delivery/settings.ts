import { z } from 'zod'
import { emailSchema } from '../../schemas/http/fields.ts'
import { parseAllowedReceivers } from './receiver-address.ts'
import { isDeliveryKey } from './sealing.ts'
import { parseSmtpUrl } from './smtp-server.ts'

const deliveryKey = z
  .string()
  .refine(isDeliveryKey, 'must be 32 bytes in base64, as openssl rand -base64 32 prints')
  .optional()

/** Settings of the processes that store receivers of alerts or send to them. */
export const deliverySettings = {
  /** Seals the secrets of receivers. Without it, no receiver that has a secret can be created. */
  DELIVERY_KEY: deliveryKey,
  /** The key before it, until all secrets are sealed with the new one. */
  DELIVERY_KEY_PREVIOUS: deliveryKey,
  /**
   * Receivers that are not public: CIDR ranges, addresses and host names with commas between them. By default none. A name that
   * only /etc/hosts or a search domain has needs its name here.
   */
  DELIVERY_ALLOWED_RECEIVERS: z
    .string()
    .transform((text, context) => {
      const result = parseAllowedReceivers(text)
      if (result.ok) return result.allowed
      context.addIssue({ code: 'custom', message: 'must be addresses, CIDR ranges and host names, with commas' })
      return z.NEVER
    })
    .optional(),
  /** Mail server. `smtps://` is TLS, `smtp://` must offer STARTTLS. Without it, no mails are sent. */
  SMTP_URL: z
    .string()
    .transform((text, context) => {
      const server = parseSmtpUrl(text)
      if (server !== undefined) return server
      context.addIssue({
        code: 'custom',
        message: 'must be smtps:// or smtp://, with ?tls=off only without a password',
      })
      return z.NEVER
    })
    .optional(),
  /** Sender of the mails. */
  MAIL_FROM: emailSchema.optional(),
}
