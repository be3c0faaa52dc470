import { type DocumentedProblem, type Operation, problemsOf } from '../http/operation.ts'
import { PROBLEMS, type ProblemService, problemSchema } from '../http/problems.ts'
import { headersOf } from './headers.ts'
import type { Components, SchemaObject } from './schema-of.ts'

/** One response a status, whose schema names the codes and services that come with it. */
export function problemResponses(operation: Operation, components: Components): Record<number, SchemaObject> {
  const problems = problemsOf(operation)
  const statuses = [...new Set(problems.map(statusOf))].sort((a, b) => a - b)
  return Object.fromEntries(
    statuses.map(status => {
      const those = problems.filter(problem => statusOf(problem) === status)
      return [status, responseOf(operation, status, those, components)]
    }),
  )
}

function responseOf(
  operation: Operation,
  status: number,
  problems: readonly DocumentedProblem[],
  components: Components,
): SchemaObject {
  const examples = problems.map(problem => [nameOf(problem, problems), { value: exampleOf(problem, operation) }])
  return {
    description: problems.map(({ code, when }) => `\`${code}\`: ${when}.`).join(' '),
    ...headersOf(operation, status),
    content: {
      'application/json': {
        schema: schemaOf(operation, problems, components),
        examples: Object.fromEntries(examples),
      },
    },
  }
}

/** The common body, narrowed to the codes and services of one status. */
function schemaOf({ problemForm }: Operation, problems: readonly DocumentedProblem[], components: Components) {
  if (problemForm) return components.schemaOf(problemForm.schema, 'output')
  const codes = [...new Set(problems.map(({ code }) => code))]
  const services = [...new Set(problems.map(serviceOf))]
  const narrowed = { code: { type: 'string', enum: codes }, service: { type: 'string', enum: services } }
  return { allOf: [components.schemaOf(problemSchema, 'output'), { type: 'object', properties: narrowed }] }
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

/** Names of examples are keys: a code that comes for several reasons is numbered. */
function nameOf(problem: DocumentedProblem, all: readonly DocumentedProblem[]): string {
  const same = all.filter(({ code }) => code === problem.code)
  return same.length === 1 ? problem.code : `${problem.code}${same.indexOf(problem) + 1}`
}
