import { z } from 'zod'
import { SESSION_ID_MAX_CHARACTERS, textOf } from './fields.ts'

/** A time in RFC 3339, with any offset. Fractions of a millisecond are ignored. */
export const instantQuerySchema = z.iso.datetime({ offset: true })

/** Reports whether `from` is before `to`, where both are given. */
export function isOrdered({ from, to }: { from?: string | undefined; to?: string | undefined }): boolean {
  return from === undefined || to === undefined || Date.parse(from) < Date.parse(to)
}

/** Issue of a range that is not ordered. */
export const orderedRange = { path: ['from'], error: 'must be before "to"' }

/** Filter by the id of a surface. */
export const surfaceFilter = textOf(0, 200).min(1).optional()
/** Filter by the id of a session. */
export const sessionFilter = textOf(0, SESSION_ID_MAX_CHARACTERS).min(1).optional()
/** Filter by `service.name`. Empty for what has none. */
export const serviceFilter = textOf(0, 1024).optional()
/** Filter that is on if given. */
export const flagFilter = z.enum(['true']).optional()

/** Filter by an attribute, as `key=value`. The first `=` ends the key. */
export const attributeFilter = textOf(0, 2048)
  .regex(/^[^=]+=/, 'must be a key and a value with "=" between them')
  .transform(text => {
    const equals = text.indexOf('=')
    return { key: text.slice(0, equals), value: text.slice(equals + 1) }
  })
  .optional()

/** Returns the schema of a query parameter in JSON, of at most as many characters. `rule` is the text of every fault. */
export function inJson<S extends z.ZodType>(value: S, characters: number, rule: string) {
  return z
    .string()
    .max(characters)
    .transform((text, context): z.infer<S> => {
      const parsed = value.safeParse(jsonOf(text))
      if (parsed.success) return parsed.data
      context.addIssue({ code: 'custom', message: rule })
      return z.NEVER
    })
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
