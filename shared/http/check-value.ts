import type { z } from 'zod'
import { ruleOf } from '../../schemas/rule-of.ts'

/** A valid value, or the faults of another one, the first as text: the field and the rule it breaks. */
type CheckedValue<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly fault: string; readonly issues: readonly z.core.$ZodIssue[] }

/**
 * Checks what a client has sent. Throws nothing, because every fault is the client's. `path` leads to the value if it is a part
 * of a body.
 */
export function checkValue<S extends z.ZodType>(
  schema: S,
  value: unknown,
  path: readonly PropertyKey[] = [],
): CheckedValue<z.infer<S>> {
  const result = schema.safeParse(value, { error: ruleOf })
  if (result.success) return { ok: true, value: result.data }
  const { issues } = result.error
  return { ok: false, fault: faultOf(issues[0], path), issues }
}

/** Returns the text of a fault: the field, and the rule it breaks. */
export function faultOf(issue: z.core.$ZodIssue | undefined, path: readonly PropertyKey[] = []): string {
  return `${[...path, ...(issue?.path ?? [])].join('.') || 'the body'} ${issue?.message}`
}
