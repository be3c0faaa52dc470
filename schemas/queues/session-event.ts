import { z } from 'zod'

/**
 * The body of a frame of the queue `sessions`: what the edge has found valid, under one name for absent and null (left
 * out). A row derives from it and from the frame.
 */
const device = {
  deviceId: z.string().optional(),
  visitorId: z.string().optional(),
  fpHash: z.string().optional(),
}

export const sessionEventSchema = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('identify'),
    sessionId: z.string(),
    identifier: z.string(),
    source: z.object({ type: z.string(), name: z.string() }),
    ...device,
    avatar: z.string().optional(),
    email: z.string().optional(),
    name: z.string().optional(),
    country: z.string().optional(),
    /** A JSON object as text: its keys are the client's, and no object of ours is made of them. */
    traits: z.string().optional(),
  }),
  z.object({ kind: z.literal('heartbeat'), sessionId: z.string(), ...device }),
])
export type SessionEvent = z.infer<typeof sessionEventSchema>
