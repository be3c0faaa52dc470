import { z } from 'zod'
import { tidySchema } from '../../schemas/openapi/tidy-schema.ts'
import type { AdmittedQueue } from '../../schemas/queues/names.ts'
import type { Permission } from '../../schemas/records/directory.ts'
import { parseQuery } from '../../shared/http/parse-query.ts'
import type { readFindingDetails, readFindingTraces } from '../findings/finding.ts'
import type { readFindingsPage } from '../findings/list-findings.ts'
import type { CallerRead } from '../http/guarded-route.ts'
import { invalid, type Outcome } from '../http/outcome.ts'
import type { Resource } from '../http/resource.ts'
import type { readLogsPage } from '../logs/logs.ts'
import type { readWatermarksPage } from '../pipeline/list-watermarks.ts'
import type { readMap } from '../services/service-map.ts'
import type { readTimelinePage } from '../sessions/timeline.ts'
import type { OutlineDeps } from '../traces/outline/outline-trace.ts'
import type { readTracesPage } from '../traces/search/list-traces.ts'
import type { Answer } from './fit-answer.ts'

/** Dependencies of the reads behind the tools. */
export type ReadDeps = Parameters<typeof readFindingsPage>[0] &
  Parameters<typeof readFindingDetails>[0] &
  Parameters<typeof readFindingTraces>[0] &
  Parameters<typeof readTracesPage>[0] &
  Parameters<typeof readLogsPage>[0] &
  Parameters<typeof readTimelinePage>[0] &
  Parameters<typeof readWatermarksPage>[0] &
  Parameters<typeof readMap>[0] &
  OutlineDeps

/** The result of a tool, before it is fitted to its limit. */
interface ToolResult {
  readonly answer: Answer
  /** Further evidence, such as the completeness of a trace. */
  readonly evidence?: Answer
  /** How the rest is read, if there is one that no cursor leads to. */
  readonly hint?: string
  /** Returns the fitted answer as lines, where they are shorter than its JSON. */
  readonly lines?: (fitted: Answer) => readonly string[]
}

/** A tool as it is defined. */
interface ToolDefinition<S extends z.ZodObject> {
  readonly name: string
  readonly title: string
  readonly description: string
  /** The permission of the operation that reads the same. */
  readonly permission: Permission
  readonly resource: Resource
  /** Kinds of requests from which the answer is made, whose watermark is its evidence. */
  readonly madeOf: readonly [AdmittedQueue, ...AdmittedQueue[]]
  /** Arguments. Their schemas are those of query parameters, whose values are texts. */
  readonly input: S
  /** Members of the answer. */
  readonly output: z.ZodRawShape
  readonly read: (deps: ReadDeps, request: CallerRead<z.infer<S>>) => Promise<Outcome<ToolResult>>
}

/** A call whose caller may use the tool. */
interface ToolCall {
  readonly workspaceId: string
  readonly args: Readonly<Record<string, unknown>>
  readonly deadline: AbortSignal
}

/** A tool of agents. */
export interface Tool extends Omit<ToolDefinition<z.ZodObject>, 'input' | 'output' | 'read'> {
  /** The tool as lists show it. */
  readonly listed: ListedTool
  /** Schema of `structuredContent`. */
  readonly answerSchema: z.ZodObject
  call(deps: ReadDeps, call: ToolCall): Promise<Outcome<ToolResult>>
}

/** A tool as lists show it. */
interface ListedTool {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly inputSchema: { readonly type: 'object' } & Record<string, unknown>
  readonly outputSchema: { readonly type: 'object' } & Record<string, unknown>
  readonly annotations: Readonly<Record<string, boolean>>
}

/** The instructions of the server explain evidence and cuts once, because each tool takes room in the context of every agent. */
const evidenceSchema = z.looseObject({ readAt: z.string(), settledBefore: z.string().optional() })
const cutSchema = z.array(z.string())

/** Texts are data that others sent, so the tools are open to the world although they change nothing. */
const ANNOTATIONS = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: true }
const NAME_MAX_CHARACTERS = 64

/** Makes a tool of its definition. */
export function defineTool<S extends z.ZodObject>(definition: ToolDefinition<S>): Tool {
  const { input, output, read, ...tool } = definition
  const { name, title, description } = tool
  const answerSchema = z.object({ evidence: evidenceSchema, ...output, cut: cutSchema })
  const known = Object.keys(input.shape)
  return {
    ...tool,
    answerSchema,
    listed: {
      ...{ name, title, description, annotations: ANNOTATIONS },
      inputSchema: { ...jsonSchemaOf(input, 'input'), additionalProperties: false },
      outputSchema: jsonSchemaOf(answerSchema, 'output'),
    },
    async call(deps, { workspaceId, args, deadline }) {
      const unknown = Object.keys(args).find(argument => !known.includes(argument))
      if (unknown !== undefined) {
        const named = JSON.stringify(unknown.slice(0, NAME_MAX_CHARACTERS))
        return invalid(`${named} is not an argument of ${name}: use ${known.join(', ')}`)
      }
      const query = parseQuery(input, textsOf(args))
      return query.ok ? read(deps, { workspaceId, query: query.value, deadline }) : invalid(query.fault)
    },
  }
}

/** Returns arguments as query parameters have them. Agents send null for what is absent. */
function textsOf(args: Readonly<Record<string, unknown>>): Readonly<Record<string, string | undefined>> {
  const texts = Object.entries(args).map(([name, value]) => {
    const isText = typeof value === 'number' || typeof value === 'boolean'
    return [name, value === null ? undefined : isText ? String(value) : value]
  })
  return Object.fromEntries(texts)
}

function jsonSchemaOf(schema: z.ZodType, io: 'input' | 'output') {
  const { $schema: _, ...json } = z.toJSONSchema(schema, {
    io,
    override: ({ jsonSchema }) => {
      tidySchema(jsonSchema as Record<string, unknown>, io)
      delete jsonSchema.example
      // Any further members, which is the rule without it.
      if (JSON.stringify(jsonSchema.additionalProperties) === '{}') delete jsonSchema.additionalProperties
    },
  })
  return json as { type: 'object' } & Record<string, unknown>
}
