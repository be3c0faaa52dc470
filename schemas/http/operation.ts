import type { z } from 'zod'
import type { Permission } from '../records/directory.ts'
import type { Credential } from './credentials.ts'
import { formatBytes } from './limits.ts'
import { PROBLEMS, type ProblemCode, type ProblemService } from './problems.ts'

/** The part of an operation that its route is made from: see `operationRoute` in `shared/http`. */
export interface RoutedOperation {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Path pattern, such as `/v3/findings/:findingId`. */
  readonly path: string
  /** Part of the service that the operation's own problems name. */
  readonly service: ProblemService
  /** Accepted credentials, any one of which is enough. Empty for operations that need none. */
  readonly credentials: readonly Credential[]
  /** Permission that the caller needs in the workspace. */
  readonly permission?: Permission
  /** Whether pages of any origin may read every response. */
  readonly cors?: boolean
  /** Absent for operations without a body. */
  readonly body?: BodyLimit
}

/** How large a body may be, as sent, and how a larger one is refused. */
interface BodyLimit {
  readonly limitBytes: number
  /** Problem code of the refusal; REQUEST_INVALID unless given. Its status is 413. */
  readonly overLimitCode?: ProblemCode
  /** Advice that the message of the refusal ends with. */
  readonly overLimitAdvice?: string
}

/** One operation of the service. Its route, the document, its examples and their tests all derive from it. */
export interface Operation extends RoutedOperation {
  readonly operationId: string
  readonly tag: Tag
  readonly summary: string
  readonly description?: string
  /** Schemas of the parameters by name, as a client sends them (the input side of transforms). */
  readonly parameters?: {
    readonly path?: z.ZodObject
    readonly query?: z.ZodObject
    readonly header?: z.ZodObject
  }
  readonly body?: RequestBody
  readonly success: {
    readonly status: 200 | 201
    readonly description: string
    readonly contents: Readonly<Record<string, Content>>
  }
  /** When the response is 202, without a body. */
  readonly acceptedWithout?: string
  /** Statuses of responses to an enqueued request. They carry a receipt, whatever the outcome. */
  readonly receiptStatuses?: readonly number[]
  /** Whether the response is the body of a dead letter, as an attachment. */
  readonly isLetterBody?: boolean
  /** Whether the response is compressed for clients that accept it. */
  readonly isCompressible?: boolean
  /** Whether the operation accepts `If-None-Match` and returns 304 when the client has the current response. */
  readonly isConditional?: boolean
  /** The operation's problems, except those that `problemsOf` adds. */
  readonly problems: readonly DocumentedProblem[]
  /** The problem body where it is not the common `{ code, message, service }`. */
  readonly problemForm?: {
    readonly schema: z.ZodType
    /** Another media type that it may have, as bytes. */
    readonly otherType?: string
  }
}

/** An operation whose caller needs a permission in the workspace. */
export interface PermittedOperation extends Operation {
  readonly permission: Permission
}

/** The body of a request. */
interface RequestBody extends BodyLimit {
  readonly contents: Readonly<Record<string, Content>>
  readonly description?: string
}

/** Tags of the document, with their descriptions. */
export const TAGS = {
  telemetry: 'OTLP exports of traces, logs and metrics.',
  sessions: 'The end user of a session, its devices and its recording.',
  releases: 'Source maps and build reports of releases.',
  findings: 'Grouped exceptions, and the traces in which they occurred.',
  traces: 'Whole traces, whether a finding occurred in them or not.',
  logs: 'Log records, and their number over time.',
  metrics: 'Metrics by name, and their series over time.',
  'dead-letters': 'Requests that could not be stored, as they were sent.',
  retention: 'How long data is kept, and the erasure of a person.',
  workspaces: 'Surfaces, keys and workspace API keys.',
  alerts: 'Receivers that are called when findings need people, and what was sent to them.',
  agents: 'Tools for agents, by the Model Context Protocol.',
  service: 'The service itself.',
} as const
/** Tag of an operation. */
type Tag = keyof typeof TAGS

/** A body of one media type. Without a schema the body is bytes. */
export interface Content {
  readonly schema?: z.ZodType
  /** Text as it is, protobuf as base64. */
  readonly example: unknown
}

/** A problem of an operation. Its status is that of its code unless given. */
export interface DocumentedProblem {
  readonly code: ProblemCode
  readonly status?: number
}

/** Returns every problem of the operation: its own, and those that follow from its body and its parameters. */
export function problemsOf(operation: Operation): DocumentedProblem[] {
  const overLimit = overLimitOf(operation)
  const code = 'REQUEST_INVALID'
  return [
    ...(overLimit ? [overLimit, { code, status: 408 } as const, { code, status: 415 } as const] : []),
    ...(overLimit || operation.credentials.includes('sessionToken') ? [{ code } as const] : []),
    ...operation.problems,
    { code: 'INTERNAL' },
  ]
}

/**
 * Reports whether a query parameter that the operation does not have is refused (docs/api/requests.md#parameters): a program
 * that filters by a misspelled name would act on everything.
 */
export function refusesOtherParameters({ path, credentials }: RoutedOperation): boolean {
  return path.startsWith('/v3/') && credentials.includes('sessionToken')
}

/** The refusal of a body over the limit, without the operation's advice. */
interface OverLimit {
  readonly code: ProblemCode
  readonly status: 413
  readonly service: ProblemService
  readonly message: string
}

/** Returns how the operation refuses a body over its limit, or undefined if it has no body. */
export function overLimitOf({ body, service }: RoutedOperation): OverLimit | undefined {
  if (body === undefined) return undefined
  const code = body.overLimitCode ?? 'REQUEST_INVALID'
  const message = `the body is over the limit of ${formatBytes(body.limitBytes)}`
  return { code, status: 413, service: code === 'REQUEST_INVALID' ? service : PROBLEMS[code].service, message }
}
