import type { z } from 'zod'
import { ActLinks } from '../delivery/act-links.ts'
import { PUBLIC_ONLY } from '../delivery/receiver-address.ts'
import { Sealing } from '../delivery/sealing.ts'
import type { SendDeps } from '../delivery/send.ts'
import type { deliverySettings } from '../delivery/settings.ts'

/** Values of the settings of deliveries. */
type DeliveryConfig = Readonly<z.infer<z.ZodObject<typeof deliverySettings>>> & {
  readonly PUBLIC_URL?: string | undefined
}

/** Means of sending alerts, of opening the secrets of receivers, and of making links that act. */
export interface Sending extends SendDeps {
  readonly sealing: Sealing
  readonly actLinks: ActLinks
}

/** Returns what sends alerts by these settings. Undefined without a key. */
export function sendDepsOf(config: DeliveryConfig): Sending | undefined {
  const { DELIVERY_KEY: key, DELIVERY_KEY_PREVIOUS: previousKey, SMTP_URL: server, MAIL_FROM: from } = config
  if (key === undefined) return undefined
  return {
    allowed: config.DELIVERY_ALLOWED_RECEIVERS ?? PUBLIC_ONLY,
    mail: server && from !== undefined ? { server, from } : undefined,
    now: Date.now,
    sealing: new Sealing({ key, previousKey }),
    actLinks: new ActLinks({ key, previousKey }, config.PUBLIC_URL),
  }
}
