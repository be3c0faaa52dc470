import { z } from 'zod'
import { sessionIdSchema, text, uuidSchema } from './session-id.ts'

/** 4.2: POST /v3/session (spec 2.4). Unknown fields are ignored; null stands for nothing here. */
export const heartbeatSchema = z.object(
  {
    sessionId: sessionIdSchema,
    deviceId: uuidSchema.optional(),
    fpHash: text.optional(),
    visitorId: uuidSchema.optional(),
  },
  'must be a JSON object',
)
export type Heartbeat = z.infer<typeof heartbeatSchema>
