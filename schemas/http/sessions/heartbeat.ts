import { z } from 'zod'
import { sessionIdSchema, text, uuidSchema } from './session-id.ts'

/** 4.2: POST /v3/session (spec 2.4). Unknown fields are ignored; null stands for nothing here. */
export const heartbeatSchema = z
  .object(
    {
      sessionId: sessionIdSchema.meta({ description: 'The id of the session, as its SDK made it.' }),
      deviceId: uuidSchema.optional(),
      fpHash: text.optional().meta({ description: 'A fingerprint of the browser.' }),
      visitorId: uuidSchema.optional(),
    },
    'must be a JSON object',
  )
  .meta({ id: 'HeartbeatRequest' })
export type Heartbeat = z.infer<typeof heartbeatSchema>
