import { z } from 'zod'

export const SESSION_ID_MAX_CHARACTERS = 200

/** A text whose message tells whether it is missing or of another type. */
export const text = z.string({ error: issue => (issue.input === undefined ? 'is required' : 'must be a string') })

/** Characters are counted as JSON Schema counts them: code points, not UTF-16 units. */
export function textOf(minCharacters: number, maxCharacters: number) {
  const range = minCharacters === 0 ? `at most ${maxCharacters}` : `${minCharacters} to ${maxCharacters}`
  return text
    .refine(value => {
      if (value.length < minCharacters || value.length > maxCharacters * 2) return false
      return value.length <= maxCharacters || [...value].length <= maxCharacters
    }, `must have ${range} characters`)
    .meta({ ...(minCharacters > 0 ? { minLength: minCharacters } : {}), maxLength: maxCharacters })
}

/** A session's id as its SDK made it, wherever a body carries one. */
export const sessionIdSchema = textOf(1, SESSION_ID_MAX_CHARACTERS)

/** RFC 9562's text form with any version, the nil and max UUID too; one spelling for upper and lower case. */
export const uuidSchema = text
  .regex(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i, 'must be a UUID')
  .transform(value => value.toLowerCase())
  .meta({ format: 'uuid' })

/** SessionResponse (spec 2.3). */
export const sessionResponseSchema = z.strictObject({ ok: z.boolean() }).meta({ id: 'SessionResponse' })
