import { z } from 'zod'
import { jsonObjectSchema } from '../fields.ts'
import { type ProblemCode, problemSchema } from '../problems.ts'

/** Deepest nesting of a message. The arguments of tools are flat. */
export const MCP_DEPTH_MAX = 16

const idSchema = z.union([z.string().max(256, 'must have at most 256 characters'), z.number()], {
  error: 'must be a string or a number',
})
const version = z.literal('2.0', 'must be "2.0"')
const object = jsonObjectSchema.optional()

/** Body of POST /mcp: one message of JSON-RPC. The protocol has no batches since its revision of 2025-06-18. */
export const mcpMessageSchema = z
  .object(
    {
      jsonrpc: version,
      id: idSchema.optional().meta({ description: 'Absent for a notification.' }),
      method: z.string('must be a string').max(128, 'must have at most 128 characters').optional(),
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
export const mcpAnswerSchema = z
  .object({
    jsonrpc: version,
    id: idSchema,
    result: object,
    error: z.object({ ...errorShape, data: z.unknown().optional() }).optional(),
  })
  .meta({ id: 'McpAnswer', description: 'A response of the Model Context Protocol: a result or an error.' })

/** Body of a problem of POST /mcp. */
export const mcpProblemSchema = z
  .object({
    jsonrpc: version,
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
export interface McpProblem {
  readonly jsonrpc: '2.0'
  readonly error: { readonly code: number; readonly message: string; readonly data: { readonly code: ProblemCode } }
}
