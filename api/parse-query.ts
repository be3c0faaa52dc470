import { z } from 'zod'
import type { Problem, ProblemService } from '../schemas/problems.ts'
import type { Outcome } from './reply.ts'

/** Query parameters by their schema; what is wrong with the first faulty one, named, as REQUEST_INVALID. */
export function parseQuery<S extends z.ZodType>(
  schema: S,
  values: Readonly<Record<string, string | undefined>>,
  service: ProblemService = 'api-findings',
): Outcome<z.infer<S>> {
  const result = schema.safeParse(values)
  if (result.success) return { ok: true, value: result.data }
  const [issue] = result.error.issues
  return invalid(`${issue?.path.join('.')} ${issue?.message}`, service)
}

/** A place in a list that is ordered by a time and an id, as text that means nothing to clients. */
export interface Cursor {
  readonly lastSeenUnixNano: string
  readonly id: string
}

export function encodeCursor({ lastSeenUnixNano, id }: Cursor): string {
  return Buffer.from(JSON.stringify([lastSeenUnixNano, id])).toString('base64url')
}

const cursorSchema = z.tuple([z.string().regex(/^\d{1,20}$/), z.string().regex(/^[0-9a-z_]{1,64}$/i)])

export function decodeCursor(text: string | undefined): Outcome<Cursor | undefined> {
  if (text === undefined) return { ok: true, value: undefined }
  try {
    const [lastSeenUnixNano, id] = cursorSchema.parse(JSON.parse(Buffer.from(text, 'base64url').toString()))
    return { ok: true, value: { lastSeenUnixNano, id } }
  } catch {
    return invalid(CURSOR_FAULT, 'api-findings')
  }
}

export const CURSOR_FAULT = 'cursor is not one that a page before has given'

export function invalid(message: string, service: ProblemService): { ok: false; problem: Problem } {
  return { ok: false, problem: { code: 'REQUEST_INVALID', message, service } }
}
