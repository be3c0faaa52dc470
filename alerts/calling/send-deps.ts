import type { z } from 'zod'
import { PUBLIC_ONLY } from '../delivery/receiver-address.ts'
import { Sealing } from '../delivery/sealing.ts'
import type { SendDeps } from '../delivery/send.ts'
import type { deliverySettings } from '../delivery/settings.ts'

/** Values of the settings of deliveries. */
type DeliveryConfig = Readonly<z.infer<z.ZodObject<typeof deliverySettings>>>

/** Returns what sends alerts and opens secrets by these settings. Undefined without a key. */
export function sendDepsOf(config: DeliveryConfig): (SendDeps & { readonly sealing: Sealing }) | undefined {
  const { DELIVERY_KEY: key, DELIVERY_KEY_PREVIOUS: previousKey, SMTP_URL: server, MAIL_FROM: from } = config
  if (key === undefined) return undefined
  return {
    allowed: config.DELIVERY_ALLOWED_RECEIVERS ?? PUBLIC_ONLY,
    mail: server && from !== undefined ? { server, from } : undefined,
    now: Date.now,
    sealing: new Sealing({ key, previousKey }),
  }
}
