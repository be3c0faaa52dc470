import { READER } from '../credentials.ts'
import { EXAMPLE } from '../example-values.ts'
import type { PermittedOperation } from '../operation.ts'
import { usageProblems } from '../problem-sets.ts'
import { keyUsagePageSchema, keyUsageQuerySchema, usagePageSchema, usageQuerySchema } from './schemas.ts'

/** A day of the example. Requests have none, because only recent days have usage. */
const DAY = '2026-09-21'
const usage = {
  day: DAY,
  surfaceId: EXAMPLE.surfaceId,
  ...{ kind: 'traces', requests: 1_204, bytes: 8_812_044, records: 60_131 },
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
  problems: usageProblems,
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
  problems: usageProblems,
}
