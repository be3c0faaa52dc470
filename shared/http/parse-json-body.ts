import { z } from 'zod'
import { nestingDepth } from '../json/member-text.ts'
import { checkValue, faultOf } from './check-value.ts'

/**
 * A valid body with its text, or a fault that names the field and the rule it breaks. Then `parsed` is what the body has, or
 * absent if it is not valid JSON.
 */
type ParsedBody<T> =
  | { readonly ok: true; readonly value: T; readonly json: string }
  | { readonly ok: false; readonly fault: string; readonly parsed?: unknown }

const jsonSchema = z.unknown()

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
  const checked = checkValue(schema, parsed)
  return checked.ok ? { ...checked, json } : { ok: false, fault: checked.fault, parsed }
}

/**
 * Parses a JSON body as `parseJsonBody` does, but leaves out optional fields that break their rule: each costs itself only.
 * `leftOut` has their faults.
 */
export function parseOptionalFields<S extends z.ZodObject>(
  schema: S,
  body: Uint8Array,
): ParsedBody<z.infer<S>> & { readonly leftOut?: string[] } {
  const parsed = parseJsonBody(jsonSchema, body)
  if (!parsed.ok) return parsed
  const { value, json } = parsed
  const checked = checkValue(schema, value)
  if (checked.ok) return { ...checked, json }
  const leftOut = new Map<PropertyKey | undefined, string>()
  for (const issue of checked.issues) {
    const [field] = issue.path
    const isOptional = typeof field === 'string' && schema.shape[field]?.safeParse(undefined).success
    const fault = faultOf(issue)
    if (!isOptional) return { ok: false, fault }
    leftOut.set(field, fault)
  }
  const kept = Object.fromEntries(Object.entries(value as object).filter(([name]) => !leftOut.has(name)))
  return { ok: true, value: schema.parse(kept), json, leftOut: [...leftOut.values()] }
}
