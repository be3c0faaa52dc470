import type { z } from 'zod'
import { nestingDepth } from '../json/member-text.ts'

export type ParsedBody<T> =
  | { readonly ok: true; readonly value: T /** The body as text. */; readonly json: string }
  | { readonly ok: false /** Names the field and the rule it broke. */; readonly fault: string }

/**
 * A JSON body by its schema. Throws nothing: every fault is the client's. A schema that recurses needs a `maxDepth` of what
 * it gets.
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
    // Its own message quotes the body, which may hold what no answer should repeat.
    return { ok: false, fault: 'the body is not valid JSON' }
  }
  if (maxDepth < json.length && nestingDepth(json) > maxDepth) {
    return { ok: false, fault: `the body must not be nested more than ${maxDepth} deep` }
  }
  const result = schema.safeParse(parsed)
  if (result.success) return { ok: true, value: result.data, json }
  const [issue] = result.error.issues
  return { ok: false, fault: `${issue?.path.join('.') || 'the body'} ${issue?.message}` }
}
