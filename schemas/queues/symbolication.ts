import { z } from 'zod'
import { findingIdSchema } from '../http/findings/schemas.ts'

/**
 * Frame bodies of the queue `symbolication`. `stack`: the stack frames of one finding, as thrown by one release.
 * `release`: the maps of a release have arrived, so its stacks of the last 24 h are symbolicated again; `after` continues
 * a request that had no time left. The payload frame names workspace and surface.
 */
export const symbolicationRequestSchema = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('stack'),
    findingId: findingIdSchema,
    /** Name of the release (`service.version`); may be empty. */
    serviceVersion: z.string(),
    stacktrace: z.string(),
    /** Debug ids that the client has sent, by URL or path of the script as in the stack. */
    debugIds: z.record(z.string(), z.string()),
    occurredAtUnixNano: z.string().regex(/^\d{1,20}$/),
  }),
  z.object({
    kind: z.literal('release'),
    slug: z.string(),
    release: z.string(),
    after: z
      .object({
        /** Empty for the beginning. */
        findingId: z.string(),
        serviceVersion: z.string(),
        /** Number of findings until here. */
        findings: z.number().int().min(0),
      })
      .optional(),
  }),
])
/** A request of the queue `symbolication`. */
export type SymbolicationRequest = z.infer<typeof symbolicationRequestSchema>
/** A request to symbolicate one stack. */
export type StackRequest = Extract<SymbolicationRequest, { kind: 'stack' }>
/** A request to symbolicate the recent stacks of a release. */
export type ReleaseRequest = Extract<SymbolicationRequest, { kind: 'release' }>
