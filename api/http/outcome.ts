import type { Problem, ProblemService } from '../../schemas/http/problems.ts'
import { type Header, jsonReply, type Reply } from '../../shared/http/route.ts'

/** The outcome of an operation: a value, or the problem to return. */
export type Outcome<T> = { readonly ok: true; readonly value: T } | Refusal

/** The outcome of an operation that is refused. */
export interface Refusal {
  readonly ok: false
  readonly problem: Problem
}

/** Forbids caches to keep a response, because the caller may lose access at any time. */
export const NO_STORE: Header = ['cache-control', 'no-store']

const JSON_HEADERS: readonly Header[] = [['content-type', 'application/json'], NO_STORE]

/** Returns the reply of a successful read, change or deletion. */
export function okReply(value: unknown): Reply {
  return jsonReply(value, 200, JSON_HEADERS)
}

/** Returns the reply of an operation that created something. */
export function createdReply(value: unknown): Reply {
  return jsonReply(value, 201, JSON_HEADERS)
}

/** Refuses a request that breaks a rule. The message names the field and the rule. */
export function invalid(message: string, service: ProblemService): Refusal {
  return { ok: false, problem: { code: 'REQUEST_INVALID', message, service } }
}
