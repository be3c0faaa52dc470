import { READER } from '../credentials.ts'
import { EXAMPLE } from '../example-values.ts'
import type { PermittedOperation } from '../operation.ts'
import { mcpProblems } from '../problem-sets.ts'
import { mcpProblem } from './problem-form.ts'
import { mcpAnswerSchema, mcpMessageSchema, mcpProblemSchema } from './schemas.ts'

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
  problems: mcpProblems,
  problemForm: { schema: mcpProblemSchema, of: mcpProblem },
}
