import type { z } from 'zod'
import type { Problem, ProblemService } from '../../schemas/http/problems.ts'
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

export const CURSOR_FAULT = 'cursor is not one that a page before has given'

export function invalid(message: string, service: ProblemService): { ok: false; problem: Problem } {
  return { ok: false, problem: { code: 'REQUEST_INVALID', message, service } }
}
