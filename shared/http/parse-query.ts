import type { z } from 'zod'

/** Valid query parameters, or a fault that names the first invalid parameter and the rule it breaks. */
type ParsedQuery<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly fault: string }

/** Parses query parameters by their schema. Throws nothing, because every fault is the client's. */
export function parseQuery<S extends z.ZodType>(
  schema: S,
  values: Readonly<Record<string, string | undefined>>,
): ParsedQuery<z.infer<S>> {
  const result = schema.safeParse(values)
  if (result.success) return { ok: true, value: result.data }
  const [issue] = result.error.issues
  return { ok: false, fault: `${issue?.path.join('.')} ${issue?.message}` }
}
