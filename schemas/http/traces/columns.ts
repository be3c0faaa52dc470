import { z } from 'zod'
import { completenessSchema, missingParentSchema } from './completeness.ts'
import { traceIdSchema, unixNanoSchema } from './schemas.ts'

const spanIndexes = z.array(z.number().int().min(0))
const wholeNumbers = z.array(z.number().int())

/** The columns of a trace. Every column of `spans` has an entry for each span, in the order of their starts and ids. */
export const traceColumnsSchema = z
  .strictObject({
    traceId: traceIdSchema,
    spanCount: z.number().int().min(1),
    rootCount: z.number().int().min(0).meta({ description: 'Number of spans without a parent.' }),
    danglingParentCount: z
      .number()
      .int()
      .min(0)
      .meta({ description: 'Number of spans whose parent is not retained in the trace.' }),
    startedAtUnixNano: unixNanoSchema,
    endedAtUnixNano: unixNanoSchema,
    wallDurationMs: z.number(),
    truncated: z
      .boolean()
      .meta({ description: 'Whether more than 1,000,000 stored spans made the columns incomplete.' }),
    names: z.array(z.string()).meta({ description: 'The distinct names of spans, cut after 256 characters.' }),
    services: z.array(z.string()).meta({ description: 'The distinct names of services, cut after 256 characters.' }),
    repeated: z
      .strictObject({ spans: spanIndexes, counts: z.array(z.number().int().min(2)) })
      .meta({ description: 'Spans that were received more than once, and how often.' }),
    completeness: completenessSchema,
    missingParents: z
      .array(missingParentSchema)
      .meta({ description: 'Parents that are not retained in the trace, the first 1,000.' }),
    spans: z.strictObject({
      ids: z
        .string()
        .regex(/^[0-9a-f]*$/)
        .meta({ description: 'The span ids one after the other, 16 hex digits each.' }),
      startDeltaNanos: wholeNumbers.meta({
        description:
          'Nanoseconds from the start of the span before. 0 for the first, which starts at `startedAtUnixNano`.',
      }),
      durationNanos: wholeNumbers.meta({ description: 'Negative for a span that ends before it starts.' }),
      parents: wholeNumbers.meta({
        description: 'Index of the parent. -1 for a root, -2 if the parent is not retained in the trace.',
      }),
      names: wholeNumbers.meta({ description: 'Index in `names`. -1 if the distinct names have more than 4 MiB.' }),
      services: wholeNumbers.meta({ description: 'Index in `services`. -1 if these have more than 1 MiB.' }),
      kinds: wholeNumbers.meta({ description: 'SpanKind of OTLP.' }),
      statuses: wholeNumbers.meta({ description: 'StatusCode of OTLP.' }),
      flags: wholeNumbers.meta({ description: 'Flags of OTLP.' }),
    }),
  })
  .meta({ id: 'TraceColumns', description: 'All spans of a trace as columns, without their details.' })
/** The columns of a trace. */
export type TraceColumns = z.infer<typeof traceColumnsSchema>
