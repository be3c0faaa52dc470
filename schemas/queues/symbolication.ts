import { z } from 'zod'

/** The id of exceptions that were sent alike (`exceptions.variant_id`): 16 bytes as hexadecimal digits. */
const variantIdSchema = z.string().regex(/^[0-9a-f]{32}$/)

/**
 * Frame bodies of the queue `symbolication`. `stack`: the stack frames of one variant, as thrown by one release.
 * `release`: the maps of a release have arrived, so its stacks of the last 24 h are symbolicated again; `after` continues
 * a request that had no time left. The payload frame names workspace and surface.
 */
export const symbolicationRequestSchema = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('stack'),
    variantId: variantIdSchema,
    serviceName: z.string(),
    type: z.string(),
    message: z.string(),
    /** The value of `exception.fingerprint`, or empty. */
    fingerprint: z.string(),
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
        variantId: z.string(),
        /** Number of variants until here. */
        variants: z.number().int().min(0),
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
