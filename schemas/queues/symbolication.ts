import { z } from 'zod'
import { findingIdSchema } from '../http/findings/schemas.ts'

/**
 * Bodies of the queue `symbolication`. `stack`: the frames of one finding as one release threw them. `release`: its maps
 * have arrived, and what it threw in the last 24 h is to be looked at again. Workspace and surface are the frame's.
 */
export const symbolicationRequestSchema = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('stack'),
    findingId: findingIdSchema,
    /** `service.version`: the name of the release, or empty. */
    serviceVersion: z.string(),
    stacktrace: z.string(),
    /** URL or path of a script as the stack names it → its debug id, where the client has said so. */
    debugIds: z.record(z.string(), z.string()),
    occurredAtUnixNano: z.string().regex(/^\d{1,20}$/),
  }),
  z.object({ kind: z.literal('release'), slug: z.string(), release: z.string() }),
])
export type SymbolicationRequest = z.infer<typeof symbolicationRequestSchema>
export type StackRequest = Extract<SymbolicationRequest, { kind: 'stack' }>
export type ReleaseRequest = Extract<SymbolicationRequest, { kind: 'release' }>
