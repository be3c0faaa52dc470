import type { ZodOpenApiResponseObject } from 'zod-openapi'
import { type DocumentedProblem, type Operation, problemsOf } from '../http/operation.ts'
import { PROBLEMS, type ProblemService } from '../http/problems.ts'
import { headersOf } from './headers.ts'

/**
 * Returns the responses of an operation's problems, one per status. Each schema lists the codes and services of its
 * status.
 */
export function problemResponses(operation: Operation): Record<`${4 | 5}${string}`, ZodOpenApiResponseObject> {
  const problems = problemsOf(operation)
  const statuses = [...new Set(problems.map(statusOf))].sort((a, b) => a - b)
  return Object.fromEntries(
    statuses.map(status => {
      const those = problems.filter(problem => statusOf(problem) === status)
      return [status, responseOf(operation, status, those)]
    }),
  )
}

function responseOf(
  operation: Operation,
  status: number,
  problems: readonly DocumentedProblem[],
): ZodOpenApiResponseObject {
  const examples = problems.map(problem => [nameOf(problem, problems), { value: exampleOf(problem, operation) }])
  return {
    description: problems.map(({ code, when }) => `\`${code}\`: ${when}.`).join(' '),
    ...headersOf(operation, status),
    content: {
      'application/json': {
        schema: schemaOf(operation, problems),
        examples: Object.fromEntries(examples),
      },
    },
  }
}

/** Returns the schema of the problems of one status: the common body, narrowed to their codes and services. */
function schemaOf({ problemForm }: Operation, problems: readonly DocumentedProblem[]) {
  if (problemForm) return problemForm.schema
  const codes = [...new Set(problems.map(({ code }) => code))]
  const services = [...new Set(problems.map(serviceOf))]
  const narrowed = { code: { type: 'string', enum: codes }, service: { type: 'string', enum: services } } as const
  return { allOf: [{ $ref: '#/components/schemas/Problem' }, { type: 'object' as const, properties: narrowed }] }
}

function exampleOf(problem: DocumentedProblem, { problemForm }: Operation): unknown {
  const example = { code: problem.code, message: problem.when, service: serviceOf(problem) }
  return problemForm ? problemForm.of(example) : example
}

function statusOf({ code, status }: DocumentedProblem): number {
  return status ?? PROBLEMS[code].status
}

function serviceOf({ code, service }: DocumentedProblem): ProblemService {
  return service ?? PROBLEMS[code].service
}

/** Returns the name of a problem's example. Several examples of one code are numbered, because names are keys. */
function nameOf(problem: DocumentedProblem, all: readonly DocumentedProblem[]): string {
  const same = all.filter(({ code }) => code === problem.code)
  return same.length === 1 ? problem.code : `${problem.code}${same.indexOf(problem) + 1}`
}
