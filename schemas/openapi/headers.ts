import { z } from 'zod'
import { EXAMPLE } from '../http/example-values.ts'
import type { Operation } from '../http/operation.ts'
import { RECEIPT_HEADER, receiptIdSchema } from '../http/receipts/schemas.ts'
import type { Components, SchemaObject } from './schema-of.ts'

interface DocumentedHeader {
  readonly description: string
  readonly schema: z.ZodType
  readonly example: string
  /** It comes with every answer of its status. */
  readonly isRequired?: boolean
}

/** Headers that answers of several operations have, as components of the document. */
const HEADERS = {
  'Retry-After': {
    description: 'Whole seconds to wait before the same request is sent again.',
    schema: z.string().regex(/^[1-9][0-9]?$/),
    example: '5',
    isRequired: true,
  },
  Allow: {
    description: 'The methods that the path takes.',
    schema: z.string(),
    example: 'GET, HEAD, OPTIONS',
    isRequired: true,
  },
  ETag: {
    description: 'Names these bytes: sent as `If-None-Match`, it has them not sent again.',
    schema: z.string().regex(/^"[0-9A-Za-z_-]+"$/),
    example: '"3q2-7wAB"',
    isRequired: true,
  },
  'Cache-Control': {
    description: 'What may keep the answer: nothing, or whoever asks each time whether it still holds.',
    schema: z.enum(['no-store', 'no-cache']),
    example: 'no-store',
    isRequired: true,
  },
  [RECEIPT_HEADER]: {
    description: 'Of a request that was enqueued: `GET /v3/receipts/{receiptId}` tells what became of it.',
    schema: receiptIdSchema,
    example: EXAMPLE.receiptId,
  },
  'Access-Control-Allow-Origin': {
    description: 'The `Origin` of the request; there is none without.',
    schema: z.string(),
    example: 'https://shop.example',
  },
  'Access-Control-Allow-Credentials': {
    description: 'With an `Origin`: beacons send cookies, and none are read.',
    schema: z.literal('true'),
    example: 'true',
  },
  'Access-Control-Expose-Headers': {
    description: 'With an `Origin`: the headers that the page may read.',
    schema: z.string(),
    example: `Retry-After, ${RECEIPT_HEADER}`,
  },
  Vary: { description: 'With an `Origin`: what the answer depends on.', schema: z.string(), example: 'Origin' },
} as const satisfies Record<string, DocumentedHeader>
type CommonHeader = keyof typeof HEADERS

const CORS_HEADERS: readonly CommonHeader[] = [
  'Access-Control-Allow-Origin',
  'Access-Control-Allow-Credentials',
  'Access-Control-Expose-Headers',
  'Vary',
]

/** The components that the headers of all operations refer to. */
export function headerComponents(components: Components): Record<string, SchemaObject> {
  return Object.fromEntries(Object.entries(HEADERS).map(([name, header]) => [name, headerObject(header, components)]))
}

/** The headers of the answers of one status. */
export function headersOf(operation: Operation, status: number): { headers?: Record<string, SchemaObject> } {
  const { cors, isConditional, credentials, receiptStatuses = [] } = operation
  const isPrivate = credentials.includes('sessionToken')
  const names: CommonHeader[] = [
    ...(status < 400 && (isPrivate || isConditional) ? (['Cache-Control'] as const) : []),
    ...(status < 400 && isConditional ? (['ETag'] as const) : []),
    ...(status === 405 ? (['Allow'] as const) : []),
    ...(status === 429 || status === 503 ? (['Retry-After'] as const) : []),
    ...(receiptStatuses.includes(status) ? ([RECEIPT_HEADER] as const) : []),
    ...(cors ? CORS_HEADERS : []),
  ]
  if (names.length === 0) return {}
  return { headers: Object.fromEntries(names.map(name => [name, { $ref: `#/components/headers/${name}` }])) }
}

function headerObject({ description, schema, example, isRequired }: DocumentedHeader, components: Components) {
  return {
    description,
    ...(isRequired && { required: true }),
    schema: components.schemaOf(schema, 'output'),
    example,
  }
}
