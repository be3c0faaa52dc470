import type { SchemaObject } from './tidy-schema.ts'

/** The parts of a document whose repetitions become components. */
interface Shareable {
  readonly paths: Readonly<Record<string, Readonly<Record<string, SharedOperation>>>>
}
interface SharedOperation {
  operationId?: string
  parameters?: SchemaObject[]
  requestBody?: SchemaObject
  responses?: Record<string, SchemaObject>
}

/** Names of the responses of problems by their status. */
const NAMES: Readonly<Record<string, string>> = {
  400: 'Invalid',
  401: 'Unauthorized',
  403: 'Denied',
  404: 'NotFound',
  405: 'NotAllowed',
  408: 'Stalled',
  409: 'Conflict',
  410: 'Gone',
  413: 'TooLarge',
  415: 'Unsupported',
  422: 'Unexecutable',
  429: 'TooMuch',
  431: 'LongHead',
  500: 'Internal',
  503: 'Unavailable',
}

/**
 * Moves the responses of problems, and parameters and bodies that several operations have, to components. So the document has a
 * third of its size, and generators make one type of a problem instead of thousands.
 */
export function shareParts(document: Shareable): void {
  const operations = Object.values(document.paths).flatMap(methods => Object.values(methods))
  const responses = new Components('responses')
  const parameters = new Components('parameters')
  const bodies = new Components('requestBodies')
  const uses = countUses(operations.flatMap(({ parameters = [], requestBody = [] }) => parameters.concat(requestBody)))
  const isShared = (part: SchemaObject) => (uses.get(JSON.stringify(part)) ?? 0) > 1
  for (const operation of operations) {
    for (const [i, parameter] of (operation.parameters ?? []).entries()) {
      if (isShared(parameter))
        operation.parameters?.splice(i, 1, parameters.refer(`${parameter.name}Parameter`, parameter))
    }
    const { requestBody, operationId = '' } = operation
    if (requestBody && isShared(requestBody)) operation.requestBody = bodies.refer(`${operationId}Body`, requestBody)
    for (const [status, response] of Object.entries(operation.responses ?? {})) {
      const name = NAMES[status]
      if (operation.responses && name !== undefined) {
        operation.responses[status] = responses.refer(formOf(response) + name, response)
      }
    }
  }
  const shared = document as unknown as { components: SchemaObject }
  const components = { responses: responses.named, parameters: parameters.named, requestBodies: bodies.named }
  Object.assign(shared.components, components)
}

/** Returns the form of problems that are not the common ones, such as `Prometheus`, from the name of their schema. */
function formOf(response: SchemaObject): string {
  const form = /"#\/components\/schemas\/([A-Z][a-z]+)(?:Problem|Status)"/.exec(JSON.stringify(response))
  return form?.[1] ?? ''
}

function countUses(parts: readonly SchemaObject[]): Map<string, number> {
  const uses = new Map<string, number>()
  for (const part of parts) {
    const text = JSON.stringify(part)
    uses.set(text, (uses.get(text) ?? 0) + 1)
  }
  return uses
}

/** Components of one kind, by their names. Different ones of one name are numbered in the order of the document. */
class Components {
  readonly named: SchemaObject = {}
  readonly #kind: string
  readonly #names = new Map<string, string>()

  constructor(kind: string) {
    this.#kind = kind
  }

  /** Returns the reference to a part, which becomes a component unless an equal one is. */
  refer(base: string, part: SchemaObject): SchemaObject {
    const text = JSON.stringify(part)
    const name = this.#names.get(text) ?? this.#unusedName(base.replaceAll(/[^A-Za-z0-9]/g, '_'))
    this.#names.set(text, name)
    this.named[name] = part
    return { $ref: `#/components/${this.#kind}/${name}` }
  }

  #unusedName(base: string): string {
    for (let number = 1; ; number++) {
      const name = number === 1 ? base : `${base}${number}`
      if (!(name in this.named)) return name
    }
  }
}
