import { z } from 'zod'
import type { ZodOpenApiResponseObject } from 'zod-openapi'
import { EXAMPLE } from '../http/example-values.ts'
import type { Operation } from '../http/operation.ts'
import { RECEIPT_HEADER, receiptIdSchema } from '../http/receipts.ts'
import { REQUEST_ID, REQUEST_ID_HEADER } from '../http/request-id.ts'

/**
 * Response headers of several operations, as components of the document. Optional ones do not come with every response.
 */
export const HEADERS = {
  'Retry-After': described(
    z.string().regex(/^[1-9][0-9]?$/),
    'Whole seconds to wait before the same request is sent again.',
    '5',
  ),
  'WWW-Authenticate': described(
    z.string(),
    'How to authenticate: `Bearer`, or `ApiKey` where a public key is accepted. `error` is present if a credential was sent.',
    'Bearer realm="penstock", error="invalid_token"',
  ),
  Allow: described(z.string(), 'The methods that the path supports.', 'GET, HEAD, OPTIONS'),
  ETag: described(
    z.string().regex(/^"[0-9A-Za-z_-]+"$/),
    'Identifies the response. Send it as `If-None-Match` to receive the response only if it has changed.',
    '"3q2-7wAB"',
  ),
  [RECEIPT_HEADER]: described(
    receiptIdSchema.optional(),
    'The receipt of an enqueued request: `GET /v3/receipts/{receiptId}` returns its outcome.',
    EXAMPLE.receiptId,
  ),
  [REQUEST_ID_HEADER]: described(
    z.string().regex(REQUEST_ID),
    'The id of the request, which the log of the service has too if it fails: the `x-request-id` or the trace id that it was sent with, else a new one.',
    '8f14e45f-ceea-467f-9c1c-2f1d0f2b6c3e',
  ),
  'Content-Disposition': described(
    z.string(),
    'The response is saved, not shown.',
    'attachment; filename="dead-letter.bin"',
  ),
  'Content-Security-Policy': described(
    z.string(),
    'A page that shows it can run nothing.',
    "default-src 'none'; sandbox",
  ),
  'X-Letter-Content-Type': described(z.string(), 'The type of the request.', 'application/x-protobuf'),
  'X-Letter-Content-Encoding': described(
    z.enum(['identity', 'gzip', 'deflate', 'zstd']),
    'The encoding of the request.',
    'gzip',
  ),
  'X-Letter-Scrubbed': described(z.string().regex(/^\d+$/), 'Values that were replaced.', '0'),
  'RateLimit-Policy': described(
    z.string().optional(),
    'The quotas of the key (draft-ietf-httpapi-ratelimit-headers). Absent for a key without quotas.',
    '"requestsPerSecond";q=100;w=1',
  ),
  RateLimit: described(
    z.string().optional(),
    'What is left of the quotas of the key, and the seconds until all of it is there again.',
    '"requestsPerSecond";r=42;t=1',
  ),
  'Content-Encoding': described(
    z.literal('gzip').optional(),
    'How the response is compressed. Absent if the client does not accept gzip.',
    'gzip',
  ),
} as const
type HeaderName = keyof typeof HEADERS

const LETTER_HEADERS: readonly HeaderName[] = [
  'Content-Disposition',
  'Content-Security-Policy',
  'X-Letter-Content-Type',
  'X-Letter-Content-Encoding',
  'X-Letter-Scrubbed',
]

/** Returns the headers of an operation's responses of one status, as references to their components. */
export function headersOf(operation: Operation, status: number): Pick<ZodOpenApiResponseObject, 'headers'> {
  const { isConditional, isLetterBody, isCompressible, credentials, receiptStatuses = [] } = operation
  const isLimited = !credentials.includes('sessionToken') && credentials.length > 0
  const names: HeaderName[] = [
    // Every response has it, but a success is not where it is needed.
    ...(status >= 400 ? ([REQUEST_ID_HEADER] as const) : []),
    ...(status < 400 && isConditional ? (['ETag'] as const) : []),
    ...(status < 400 && isCompressible ? (['Content-Encoding'] as const) : []),
    ...(status < 400 && isLetterBody ? LETTER_HEADERS : []),
    ...(status === 401 ? (['WWW-Authenticate'] as const) : []),
    ...(status === 405 ? (['Allow'] as const) : []),
    ...(status === 429 || status === 503 ? (['Retry-After'] as const) : []),
    ...(receiptStatuses.includes(status) ? ([RECEIPT_HEADER] as const) : []),
    ...(isLimited && (status < 400 || status === 429) ? (['RateLimit-Policy', 'RateLimit'] as const) : []),
  ]
  if (names.length === 0) return {}
  return { headers: Object.fromEntries(names.map(name => [name, { $ref: `#/components/headers/${name}` }])) }
}

function described(schema: z.ZodType, description: string, example: string): z.ZodType {
  return schema.meta({ header: { description, example } })
}
