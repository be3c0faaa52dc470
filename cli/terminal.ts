import { once } from 'node:events'
import type { Writable } from 'node:stream'
import { InvalidArgumentError } from 'commander'
import { z } from 'zod'
import { userIdSchema } from '../schemas/records/directory.ts'

/** Returns a parser of an option's value. Commander prints the error that it throws, and the command exits with 2. */
export function parsedBy<S extends z.ZodType>(schema: S): (text: string) => z.infer<S> {
  return text => {
    const result = schema.safeParse(text)
    if (!result.success) throw new InvalidArgumentError(result.error.issues[0]?.message ?? 'It is not valid.')
    return result.data
  }
}

const SECONDS = { s: 1, m: 60, h: 3_600, d: 86_400 } as const
const DURATION_RULE = 'It must be a number with a unit: 90s, 15m, 1h or 30d.'

/** A duration such as `1h`, as whole seconds. */
export const durationSchema = z
  .string()
  .regex(/^[1-9][0-9]{0,9}[smhd]$/, DURATION_RULE)
  .transform(text => Number(text.slice(0, -1)) * SECONDS[text.slice(-1) as keyof typeof SECONDS])
  .refine(seconds => seconds <= 100 * 365 * SECONDS.d, 'It must not be longer than 100 years.')

const LIMIT_RULE = 'It must be a whole number from 1 to 10000.'

/** The most entries that a command prints. */
export const limitSchema = z
  .string()
  .regex(/^\d{1,5}$/, LIMIT_RULE)
  .transform(Number)
  .refine(limit => limit >= 1 && limit <= 10_000, LIMIT_RULE)

/** The display name of a workspace, a user or a surface. */
export const nameSchema = z
  .string()
  .regex(/^[^\p{Cc}\p{Cs}]{1,120}$/u, 'It must have 1 to 120 characters and no control characters.')

const USER_ID_RULE = 'It must have 1 to 200 characters and no control characters.'
/** The id of a user, with an error text for the operator. */
export const userIdOptionSchema = z.string().refine(text => userIdSchema.safeParse(text).success, USER_ID_RULE)

/** Returns one line of a table. Every cell but the last is padded to the width of its column. */
export function rowOf(cells: readonly string[], widths: readonly number[]): string {
  return cells
    .map((cell, i) => printable(cell).padEnd(i === cells.length - 1 ? 0 : (widths[i] ?? 0)))
    .join('  ')
    .trimEnd()
}

/** How a command prints a list. */
export interface Listing<T> {
  /** Heads of the columns with their widths. */
  readonly columns: Readonly<Record<string, number>>
  readonly cells: (entry: T) => readonly string[]
  /** Returns what `--json` prints of an entry. */
  readonly shown: (entry: T) => unknown
}

/** Prints a list as a table, or with `--json` each entry as a line of JSON. */
export async function printList<T>(
  { print, json }: { readonly print: (text: string) => void; readonly json: boolean | undefined },
  { columns, cells, shown }: Listing<T>,
  entries: Iterable<T> | AsyncIterable<T>,
): Promise<void> {
  const widths = Object.values(columns)
  if (!json) print(rowOf(Object.keys(columns), widths))
  for await (const entry of entries) print(json ? JSON.stringify(shown(entry)) : rowOf(cells(entry), widths))
}

/** Returns a number with a noun, such as `1 span` or `2 spans`. */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${count} ${nounFor(count, noun, plural)}`
}

/** Returns the noun that a number needs. */
export function nounFor(count: number, noun: string, plural = `${noun}s`): string {
  return count === 1 ? noun : plural
}

/** Escapes control and format characters as `\u{…}`, so that foreign text cannot control the terminal. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, char => `\\u{${char.codePointAt(0)?.toString(16)}}`)
}

/**
 * Writes text or bytes to a stream and waits while its buffer is full. Throws if the stream breaks (EPIPE: the reader has closed
 * it).
 */
export async function writeContent(stream: Writable, content: string | Uint8Array): Promise<void> {
  if (!stream.write(content)) await once(stream, 'drain')
}
