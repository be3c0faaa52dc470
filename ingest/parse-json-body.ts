import type { z } from 'zod'

export type ParsedBody<T> =
  | { readonly ok: true; readonly value: T /** The body as text. */; readonly json: string }
  | { readonly ok: false /** Names the field and the rule it broke. */; readonly fault: string }

/** A JSON body by its schema. Throws nothing: every fault is the client's. */
export function parseJsonBody<S extends z.ZodType>(schema: S, body: Uint8Array): ParsedBody<z.infer<S>> {
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
  const result = schema.safeParse(parsed)
  if (result.success) return { ok: true, value: result.data, json }
  const [issue] = result.error.issues
  return { ok: false, fault: `${issue?.path.join('.') || 'the body'} ${issue?.message}` }
}
