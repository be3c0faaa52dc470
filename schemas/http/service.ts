import { z } from 'zod'
import type { Operation } from './operation.ts'
import { INTERNAL } from './problem-sets.ts'

/** Reads the OpenAPI document (docs/api/requests.md#openapi). */
export const readOpenApi: Operation = {
  operationId: 'readOpenApi',
  method: 'GET',
  path: '/openapi.json',
  service: 'gateway',
  tag: 'service',
  summary: 'Read this document',
  credentials: [],
  success: {
    status: 200,
    description: 'An OpenAPI document.',
    contents: {
      'application/json': {
        schema: z.looseObject({ openapi: z.string() }).meta({ id: 'OpenApiDocument' }),
        example: { openapi: '3.0.4', info: { title: 'Penstock', version: '3.0.0' }, paths: {} },
      },
    },
  },
  isConditional: true,
  cors: true,
  problems: [INTERNAL],
}
