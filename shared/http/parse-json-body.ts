import type { z } from 'zod'
import { nestingDepth } from '../json/member-text.ts'

/**
 * A valid body with its text, or a fault that names the field and the rule it breaks. Then `parsed` is what the body has, or
 * absent if it is not valid JSON.
 */
type ParsedBody<T> =
  | { readonly ok: true; readonly value: T; readonly json: string }
  | { readonly ok: false; readonly fault: string; readonly parsed?: unknown }

/**
 * Parses a JSON body by its schema. Throws nothing, because every fault is the client's. A recursive schema needs a
 * `maxDepth`, which bounds the recursion.
 */
export function parseJsonBody<S extends z.ZodType>(
  schema: S,
  body: Uint8Array,
  maxDepth = Number.POSITIVE_INFINITY,
): ParsedBody<z.infer<S>> {
  let json: string
  try {
    json = new TextDecoder('utf-8', { fatal: true }).decode(body)
  } catch {
    return { ok: false, fault: 'the body is not valid UTF-8' }
  }
  let parsed: unknown
  try {
    parsed = JSON.parse(json)
  } catch {
    // The message of the parser quotes the body, which may contain secrets.
    return { ok: false, fault: 'the body is not valid JSON' }
  }
  if (maxDepth < json.length && nestingDepth(json) > maxDepth) {
    return { ok: false, fault: `the body must not be nested more than ${maxDepth} deep`, parsed }
  }
  const result = schema.safeParse(parsed)
  if (result.success) return { ok: true, value: result.data, json }
  return { ok: false, fault: firstFault(result.error), parsed }
}

/** Returns the first fault of a value, with its field. `path` leads to the value if it is part of a body. */
export function firstFault(error: z.ZodError, path: readonly PropertyKey[] = []): string {
  const [issue] = error.issues
  return `${[...path, ...(issue?.path ?? [])].join('.') || 'the body'} ${issue?.message}`
}
