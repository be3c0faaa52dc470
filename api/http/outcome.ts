import type { RoutedOperation } from '../../schemas/http/operation.ts'
import type { Problem } from '../../schemas/http/problems.ts'
import {
  type Header,
  type IdentifiedRequest,
  jsonReply,
  NO_SNIFF,
  NO_STORE,
  problemReply,
  type Reply,
} from '../../shared/http/route.ts'
import { errorFields, PermanentError, TransientError } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'

/** The outcome of an operation: a value, or the problem to return. */
export type Outcome<T> = { readonly ok: true; readonly value: T } | Refusal

/** The outcome of an operation that is refused. */
export interface Refusal {
  readonly ok: false
  readonly problem: Problem
}

const JSON_HEADERS: readonly Header[] = [['content-type', 'application/json'], NO_SNIFF, NO_STORE]

/** Returns the reply of a successful read, change or deletion. */
export function okReply(value: unknown): Reply {
  return jsonReply(value, 200, JSON_HEADERS)
}

/** Returns the same reply for a value that is JSON already. */
export function okJson(body: string | Uint8Array): Reply {
  return { status: 200, headers: JSON_HEADERS, body }
}

/** Returns the reply of an operation that created something. */
export function createdReply(value: unknown): Reply {
  return jsonReply(value, 201, JSON_HEADERS)
}

/** Refuses a request that breaks a rule. The message names the field and the rule. */
export function invalid(message: string): Refusal {
  return { ok: false, problem: { code: 'REQUEST_INVALID', message } }
}

/** Refuses to replace rules because they have another revision than the request names. */
export function otherRevision(current: number): Refusal {
  const message = `revision must be that of the rules, which is ${current}: read them, and decide again`
  return { ok: false, problem: { code: 'REQUEST_INVALID', status: 409, message } }
}

/** How the outcome of an operation becomes a reply. */
interface RenderOptions<T> {
  readonly operation: RoutedOperation
  readonly reply: (value: T) => Reply
}

/** How a store that fails becomes a reply. */
interface FailureOptions {
  readonly operation: RoutedOperation
  readonly unavailable: Problem
  readonly logger: Logger
  /** The request, which the log names. */
  readonly request: IdentifiedRequest
  /** Fires when the client leaves. A failure after that is not logged. */
  readonly closed?: AbortSignal
}

/** Runs an operation and returns its reply. If a store fails, logs the error and returns the problem `unavailable`. */
export function replyOf<T>(run: () => Promise<Outcome<T>>, options: RenderOptions<T> & FailureOptions): Promise<Reply> {
  return replyUnlessUnavailable(async () => renderOutcome(await run(), options), options)
}

/** Returns the reply that is made, or the problem `unavailable` if a store fails meanwhile. Logs such a failure. */
export async function replyUnlessUnavailable(
  makeReply: () => Promise<Reply>,
  { operation, unavailable, logger, request, closed }: FailureOptions,
): Promise<Reply> {
  try {
    return await makeReply()
  } catch (error) {
    if (!(error instanceof TransientError || error instanceof PermanentError)) throw error
    if (!closed?.aborted) {
      const { requestId } = request
      const fields = { requestId, ...errorFields(error), path: operation.path, problem: unavailable.code }
      logger.warn(fields, 'an operation failed')
    }
    return problemReply(unavailable)
  }
}

/** Returns the reply of an outcome. */
export function renderOutcome<T>(outcome: Outcome<T>, { operation, reply }: RenderOptions<T>): Reply {
  return outcome.ok ? reply(outcome.value) : refusalReply(outcome.problem, operation)
}

/** Returns the reply of a refusal. An invalid request names the service of its operation, every other problem that of its code. */
export function refusalReply(problem: Problem, { service }: RoutedOperation): Reply {
  return problemReply(problem.code === 'REQUEST_INVALID' ? { ...problem, service } : problem)
}
