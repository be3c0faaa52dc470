import type { z } from 'zod'
import type { ProblemCode, ProblemService } from '../http/problems.ts'
import type { Permission } from '../records/directory.ts'
import type { Credential } from './security.ts'

/** One operation of the service, said once: the document, its examples and the tests of both derive from it. */
export interface Operation {
  readonly operationId: string
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** As the route has it: `/v3/findings/:findingId`. */
  readonly path: string
  readonly tag: Tag
  readonly summary: string
  readonly description?: string
  /** Any one of them; none for operations that everybody may call. */
  readonly credentials: readonly Credential[]
  /** What the caller must be permitted to do in the workspace. */
  readonly permission?: Permission
  /** Schemas of the parameters by their names. What a client sends: the input side of transforms. */
  readonly parameters?: {
    readonly path?: z.ZodObject
    readonly query?: z.ZodObject
    readonly header?: z.ZodObject
  }
  readonly body?: {
    readonly contents: Readonly<Record<string, Content>>
    readonly description?: string
  }
  readonly success: {
    readonly status: 200 | 201
    readonly description: string
    readonly contents: Readonly<Record<string, Content>>
  }
  /** Statuses of answers to a request that was enqueued: it has a receipt, whatever came of it. */
  readonly receiptStatuses?: readonly number[]
  /** It takes `If-None-Match`, and answers 304 to who has its answer already. */
  readonly isConditional?: boolean
  /** Pages of any origin may read every answer. */
  readonly cors?: boolean
  readonly problems: readonly DocumentedProblem[]
  /** The body of its problems, where it is not the common `{ code, message, service }`, and how it is made of that. */
  readonly problemForm?: {
    readonly schema: z.ZodType
    readonly of: (common: { code: ProblemCode; message: string }) => unknown
  }
}

export const TAGS = {
  telemetry: 'OTLP exports of traces, logs and metrics.',
  sessions: 'Who a session is, its devices, and what was recorded of it.',
  releases: 'Source maps and build reports of releases.',
  findings: 'Exceptions, grouped, and the traces in which they occurred.',
  workspaces: 'Surfaces, keys and workspace API keys.',
  service: 'The service itself.',
} as const
export type Tag = keyof typeof TAGS

/** A body of one media type. Without a schema it is bytes. */
export interface Content {
  readonly schema?: z.ZodType
  /** What is sent or answered: text as it is, protobuf as base64. */
  readonly example: unknown
}

/** A problem that an operation answers with; the status and the service of its code, unless given. */
export interface DocumentedProblem {
  readonly code: ProblemCode
  /** When it comes. */
  readonly when: string
  readonly status?: number
  readonly service?: ProblemService
  /** Only of operations whose path has parameters. */
  readonly isOfPath?: boolean
}
