import { z } from 'zod'
import { READER } from './credentials.ts'
import { EXAMPLE } from './example-values.ts'
import type { PermittedOperation } from './operation.ts'
import { nextCursorSchema, pageQuerySchema } from './page.ts'
import { droppedSchema } from './privacy/dropping.ts'
import { callerProblems } from './problem-sets.ts'

/** The most days that one list of the usage covers. */
export const USAGE_DAYS_MAX = 31

const dayQuery = z.iso.date()

/** Query of GET /v3/usage. */
export const usageQuerySchema = pageQuerySchema.extend({
  from: dayQuery.optional().meta({ description: `The first day, in UTC. By default six days before the last.` }),
  to: dayQuery.optional().meta({ description: 'The last day, in UTC. By default today.' }),
})

/** Query of GET /v3/usage/keys. */
export const keyUsageQuerySchema = pageQuerySchema.extend({
  day: dayQuery.optional().meta({ description: 'The day, in UTC. By default today.' }),
})

const count = z.number().int().min(0)
const kind = z.string().meta({ description: 'The kind of request, such as `traces` or `replay`.' })

/** Requests of a surface on a day. */
const usageSchema = z
  .strictObject({
    day: z.iso.date(),
    surfaceId: z.string(),
    kind,
    requests: count.meta({ description: 'Number of requests that workers have processed.' }),
    bytes: count.meta({ description: 'Their bytes as they were sent.' }),
    records: count.meta({ description: 'Number of records that were stored.' }),
    scrubbed: z
      .array(z.strictObject({ rule: z.string(), values: count }))
      .meta({ description: 'Number of values that scrubbing replaced, by rule.' }),
    dropped: droppedSchema,
  })
  .meta({ id: 'Usage' })

/** Response of GET /v3/usage, the latest day first. */
export const usagePageSchema = z
  .strictObject({ usage: z.array(usageSchema), nextCursor: nextCursorSchema })
  .meta({ id: 'UsagePage' })
/** Response of GET /v3/usage. */
export type UsageAnswer = z.infer<typeof usagePageSchema>

/** Response of GET /v3/usage/keys, in the order of the ids of keys. */
export const keyUsagePageSchema = z
  .strictObject({
    day: z.iso.date(),
    keys: z.array(
      z
        .strictObject({
          id: z.string().meta({ description: 'The public key.' }),
          requests: count.meta({ description: 'Number of requests with the key, also those that were refused later.' }),
          bytes: count.meta({ description: 'Sum of the lengths that they announced. Chunked bodies announce none.' }),
        })
        .meta({ id: 'KeyUsage' }),
    ),
    nextCursor: nextCursorSchema,
  })
  .meta({ id: 'KeyUsagePage' })
/** Response of GET /v3/usage/keys. */
export type KeyUsageAnswer = z.infer<typeof keyUsagePageSchema>

/** A day of the example. Requests have none, because only recent days have usage. */
const DAY = '2026-09-21'
const usage = {
  day: DAY,
  surfaceId: EXAMPLE.surfaceId,
  ...{ kind: 'traces', requests: 1_204, bytes: 8_812_044, records: 60_131 },
  scrubbed: [{ rule: 'credentials', values: 12 }],
  dropped: [{ rule: 'health checks', count: 340 }],
}

/** Lists what the surfaces of a workspace have sent (docs/api/workspaces.md#usage). */
export const listUsage: PermittedOperation = {
  operationId: 'listUsage',
  method: 'GET',
  path: '/v3/usage',
  service: 'api-analytics',
  tag: 'workspaces',
  summary: 'List requests, bytes and records by day, surface and kind, the latest day first',
  permission: 'org:telemetry:read',
  credentials: READER,
  parameters: { query: usageQuerySchema },
  success: {
    status: 200,
    description: 'A page of the usage.',
    contents: { 'application/json': { schema: usagePageSchema, example: { usage: [usage], nextCursor: null } } },
  },
  problems: callerProblems,
}

/** Lists the requests of the public keys of a workspace on a day (docs/api/workspaces.md#usage). */
export const listKeyUsage: PermittedOperation = {
  operationId: 'listKeyUsage',
  method: 'GET',
  path: '/v3/usage/keys',
  service: 'api-analytics',
  tag: 'workspaces',
  summary: 'List requests and bytes of a day by public key',
  permission: 'org:telemetry:read',
  credentials: READER,
  parameters: { query: keyUsageQuerySchema },
  success: {
    status: 200,
    description: 'A page of keys.',
    contents: {
      'application/json': {
        schema: keyUsagePageSchema,
        example: {
          day: DAY,
          keys: [{ id: EXAMPLE.surfaceKeyId, requests: 1_204, bytes: 8_812_044 }],
          nextCursor: null,
        },
      },
    },
  },
  problems: callerProblems,
}
