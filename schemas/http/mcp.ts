import { z } from 'zod'
import { READER } from './credentials.ts'
import { EXAMPLE } from './example-values.ts'
import { jsonObjectSchema } from './fields.ts'
import type { PermittedOperation } from './operation.ts'
import { callerProblems } from './problem-sets.ts'
import { type ProblemCode, problemSchema } from './problems.ts'

/** Deepest nesting of a message. The arguments of tools are flat. */
export const MCP_DEPTH_MAX = 16

const textIdSchema = z.string().max(256)
const idSchema = z.union([textIdSchema, z.number()], {
  error: 'must be a string or a number',
})
const version = z.literal('2.0')
const object = jsonObjectSchema.optional()

/** Body of POST /mcp: one message of JSON-RPC. The protocol has no batches since its revision of 2025-06-18. */
export const mcpMessageSchema = z
  .object(
    {
      jsonrpc: version,
      id: idSchema.optional().meta({ description: 'Absent for a notification.' }),
      method: z.string().max(128).optional(),
      params: object,
      result: object,
      error: object,
    },
    'must be one JSON-RPC message',
  )
  .refine(({ method, result, error }) => [method, result, error].filter(part => part !== undefined).length === 1, {
    path: ['method'],
    error: 'is required, unless the message is a response',
  })
  .meta({ id: 'McpMessage', description: 'A message of the Model Context Protocol.' })
/** Body of POST /mcp. */
export type McpMessage = z.infer<typeof mcpMessageSchema>

const errorShape = { code: z.number().int(), message: z.string() }

/** Response of POST /mcp to a request. */
const mcpAnswerSchema = z
  .object({
    jsonrpc: version,
    id: idSchema,
    result: object,
    error: z.object({ ...errorShape, data: z.unknown().optional() }).optional(),
  })
  .meta({ id: 'McpAnswer', description: 'A response of the Model Context Protocol: a result or an error.' })

/** Body of a problem of POST /mcp. */
const mcpProblemSchema = z
  .object({
    jsonrpc: version,
    // Each type by itself: OpenAPI 3.0 ignores the mark on a union.
    id: z
      .union([textIdSchema.nullable(), z.number().nullable()])
      .meta({ description: 'That of the request. Null if the message does not have a valid one.' }),
    error: z.object({
      ...errorShape,
      data: z
        .object({ code: problemSchema.shape.code.optional() })
        .optional()
        .meta({ description: 'Absent if the message breaks a rule of the protocol itself.' }),
    }),
  })
  .meta({ id: 'McpProblem', description: 'A refusal as an error of JSON-RPC.' })
/** Body of a problem of POST /mcp. */
interface McpProblem {
  readonly jsonrpc: '2.0'
  readonly id: McpId
  readonly error: { readonly code: number; readonly message: string; readonly data: { readonly code: ProblemCode } }
}

/** Id of a request, or null if it is not known. */
type McpId = z.infer<typeof idSchema> | null

/** Code of JSON-RPC for a body that is not valid JSON. */
const PARSE_ERROR = -32_700
/** Codes of JSON-RPC by the code of a problem. Those of all others are -32000, the first that servers may choose. */
const ERROR_CODES: Partial<Record<ProblemCode, number>> = { REQUEST_INVALID: -32_600, INTERNAL: -32_603 }
const SERVER_ERROR = -32_000

/**
 * Returns the body of a problem as clients of the Model Context Protocol read it. `message` is what was refused; undefined if it
 * is not valid JSON, and null if it was not read.
 */
export function mcpProblem(
  { code, message }: { readonly code: ProblemCode; readonly message: string },
  refused: { readonly message: unknown } = { message: null },
): McpProblem {
  const named = z.object({ id: idSchema }).safeParse(refused.message)
  const rpcCode = refused.message === undefined ? PARSE_ERROR : (ERROR_CODES[code] ?? SERVER_ERROR)
  return { jsonrpc: '2.0', id: named.data?.id ?? null, error: { code: rpcCode, message, data: { code } } }
}

/** Exchanges a message with an agent (docs/api/other-tools.md#mcp). */
export const exchangeMcp: PermittedOperation = {
  operationId: 'exchangeMcp',
  method: 'POST',
  path: '/mcp',
  service: 'api-analytics',
  tag: 'agents',
  summary: 'Exchange a message of the Model Context Protocol, with tools that read stored telemetry',
  description:
    'The transport is Streamable HTTP without sessions or streams. A request is answered with JSON, a notification with 202. A tool needs the permission of the operation that reads the same.',
  credentials: READER,
  permission: 'org:telemetry:read',
  body: {
    limitBytes: 64 * 1024,
    contents: {
      'application/json': {
        schema: mcpMessageSchema,
        example: {
          jsonrpc: '2.0',
          id: 1,
          method: 'tools/call',
          params: { name: 'get_finding', arguments: { findingId: EXAMPLE.findingId } },
        },
      },
    },
  },
  success: {
    status: 200,
    description: 'The response to the request.',
    contents: {
      'application/json': {
        schema: mcpAnswerSchema,
        example: { jsonrpc: '2.0', id: 1, result: { content: [{ type: 'text', text: '{}' }], structuredContent: {} } },
      },
    },
  },
  acceptedWithout: 'The message is a notification or a response, which has none.',
  problems: callerProblems,
  problemForm: { schema: mcpProblemSchema },
}
