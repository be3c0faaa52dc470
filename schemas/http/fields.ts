import { z } from 'zod'
import { ruleOf } from '../rule-of.ts'

/** Any JSON value. */
type JsonValue = z.core.util.JSONType

// Not z.json(): its recursion has no name that the document could refer to.
/** Any JSON value. */
export const jsonValueSchema: z.ZodType<JsonValue> = z
  .lazy(() =>
    z.union([z.string(), z.number(), z.boolean(), z.null(), z.array(jsonValueSchema), objectOf(jsonValueSchema)]),
  )
  .meta({ id: 'JsonValue', description: 'Any JSON value.', override: ({ jsonSchema }) => delete jsonSchema.anyOf })

/** Any JSON object, by its keys. A request with one must be of bounded depth (`parseJsonBody`). */
export const jsonObjectSchema = objectOf(jsonValueSchema).meta({ id: 'JsonObject' })

function objectOf<S extends z.ZodType>(values: S) {
  return z.record(z.string(), values)
}

/**
 * Returns the schema of a body with exactly these fields, for operations where silently ignoring a misspelled field
 * would do harm.
 */
export function exactObject<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.strictObject(shape)
}

/**
 * Returns the schema of a list of at most `max` entries. A longer list is refused before its entries are looked at: zod keeps
 * the faults of all of them, which takes a tenth of a second for the entries of 256 KiB.
 */
export function listOf<S extends z.ZodType>(entry: S, max: number, typeRule: string) {
  const rule = `must have at most ${max} items`
  const error = ({ input }: { input?: unknown }) => (input === undefined ? 'is required' : typeRule)
  const bounded = z.transform((value, context) => {
    if (!Array.isArray(value) || value.length <= max) return value
    context.issues.push({ code: 'custom', message: rule, input: value })
    return z.NEVER
  })
  // Zod takes every transform as one of an optional field, and the document would not require the list.
  bounded._zod.optin = undefined
  return z.pipe(bounded, z.array(entry, { error }).max(max, rule))
}

/** A text. */
export const text = z.string({ error: ruleOf })

/** Most characters of the id of a session. */
export const SESSION_ID_MAX_CHARACTERS = 1_024

/** A text that is not empty. */
export const filledText = text.min(1)

/** Characters of an address beyond ASCII (RFC 6531). Those that no one can see are more likely an accident. */
const BEYOND_ASCII = String.raw`[^\0-\x7f\p{Z}\p{Cc}\p{Cs}]`
const ATOM = String.raw`(?:[\w!#$%&'*+/=?^\x60{|}~-]|${BEYOND_ASCII})+`
const QUOTED = String.raw`"(?:[ !#-\[\]-~]|\\[ -~]|${BEYOND_ASCII})*"`
const LABEL = `(?:[a-z0-9]|${BEYOND_ASCII})(?:(?:[a-z0-9-]|${BEYOND_ASCII})*(?:[a-z0-9]|${BEYOND_ASCII}))?`
const LOCAL_PART = new RegExp(`^(?:${ATOM}(?:\\.${ATOM})*|${QUOTED})$`, 'u')
const DOMAIN = new RegExp(`^${LABEL}(?:\\.${LABEL})*$`, 'iu')
const ADDRESS_LITERAL = /^\[(?:IPv6:(?<v6>[^\]]+)|(?<v4>[^\]]+))\]$/i

/** An email address: a mailbox of SMTP (RFC 5321 section 4.1.2) in any script (RFC 6531). Its domain needs no dot. */
export const emailSchema = text.refine(isMailbox, 'must be an email address').meta({ format: 'email' })

function isMailbox(address: string): boolean {
  const at = address.lastIndexOf('@')
  const [local, domain] = [address.slice(0, at), address.slice(at + 1)]
  // RFC 5321 section 4.5.3.1, in characters.
  if (at < 1 || address.length > 254 || local.length > 64 || !LOCAL_PART.test(local)) return false
  const literal = ADDRESS_LITERAL.exec(domain)?.groups
  if (literal) return z.ipv6().safeParse(literal.v6).success || z.ipv4().safeParse(literal.v4).success
  return DOMAIN.test(domain) && domain.split('.').every(label => label.length <= 63)
}

/** Returns the schema of a text of bounded length. Counts code points, as JSON Schema does, not UTF-16 units. */
export function textOf(minCharacters: number, maxCharacters: number) {
  const range = minCharacters === 0 ? `at most ${maxCharacters}` : `${minCharacters} to ${maxCharacters}`
  return text
    .refine(value => {
      if (value.length < minCharacters || value.length > maxCharacters * 2) return false
      return value.length <= maxCharacters || [...value].length <= maxCharacters
    }, `must have ${range} characters`)
    .meta({ ...(minCharacters > 0 ? { minLength: minCharacters } : {}), maxLength: maxCharacters })
}

/** A UUID in the text form of RFC 9562, of any version, nil and max included. Becomes lower case. */
export const uuidSchema = text
  .regex(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i, 'must be a UUID')
  .transform(value => value.toLowerCase())
  .meta({ format: 'uuid' })

/** Name of the default of a parameter in the metadata of its schema: zod leaves out the default of what is read from digits. */
export const DEFAULT = 'x-default'

/** Returns the schema of a query parameter in decimal digits. The message names the range. */
export function wholeNumber(min: number, max: number) {
  const rule = `must be a whole number from ${min} to ${max}`
  return z
    .string()
    .regex(/^\d{1,10}$/, rule)
    .transform(Number)
    .refine(value => value >= min && value <= max, rule)
    .meta({ type: 'integer', minimum: min, maximum: max })
}

/** Name of the header by which a creation that is sent again is recognized (docs/api/requests.md#idempotency). */
export const IDEMPOTENCY_KEY_HEADER = 'idempotency-key'

/** Form of the header. A value in quotes, as a structured field has it, is the same key. */
export const IDEMPOTENCY_KEY = /^[!-~]{1,255}$/

/** Header parameter of every operation that creates something. */
export const idempotencyHeader = z.object({
  [IDEMPOTENCY_KEY_HEADER]: z.string().regex(IDEMPOTENCY_KEY).optional().meta({
    // Blanks around it and quotes are accepted too, and without a value it is as if it were absent.
    pattern: String.raw`^[\t -~]*$`,
    description:
      'A new value, such as a UUID, for every creation; the same one when the request is repeated. For 24 h the same request gets the same response, and another one `IDEMPOTENCY_CONFLICT`.',
  }),
})
