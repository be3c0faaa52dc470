import { InvalidArgumentError } from 'commander'
import { z } from 'zod'

/** Parses the value of an option by a schema; Commander tells what it threw, and the command ends as wrongly used. */
export function parsedBy<S extends z.ZodType>(schema: S): (text: string) => z.infer<S> {
  return text => {
    const result = schema.safeParse(text)
    if (!result.success) throw new InvalidArgumentError(result.error.issues[0]?.message ?? 'it is not valid')
    return result.data
  }
}

const SECONDS = { s: 1, m: 60, h: 3_600, d: 86_400 } as const
const RULE = 'It is a number with its unit: 90s, 15m, 1h or 30d.'
const TOO_LONG = 'It is longer than a hundred years.'

/** A span of time like `1h`, as whole seconds. */
export const durationSchema = z
  .string()
  .regex(/^[1-9][0-9]{0,9}[smhd]$/, RULE)
  .transform(text => Number(text.slice(0, -1)) * SECONDS[text.slice(-1) as keyof typeof SECONDS])
  .refine(seconds => seconds <= 100 * 365 * SECONDS.d, TOO_LONG)

/** What a person calls something. */
export const nameSchema = z
  .string()
  .regex(/^[^\p{Cc}\p{Cs}]{1,120}$/u, 'It has 1 to 120 characters, and no control characters.')
