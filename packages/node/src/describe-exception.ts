import { inspect } from 'node:util'
import type { Attributes } from '@opentelemetry/api'

/** Service and readers keep this many exceptions of a chain. */
const MAX_ERRORS = 16
const MAX_STACK_CHARS = 32_768

/** Returns the attributes of an exception by the conventions of OpenTelemetry. Anything can be thrown, not only errors. */
export function describeException(thrown: unknown): Attributes {
  if (!isError(thrown)) return { 'exception.message': typeof thrown === 'string' ? thrown : inspect(thrown) }
  return {
    'exception.type': typeOf(thrown),
    'exception.message': String(thrown.message),
    'exception.stacktrace': chainOf(thrown),
  }
}

/**
 * Returns the stack of an error with those of its causes and of the members of an AggregateError, in the form of `util.inspect`.
 * Other properties are left out, because errors of clients hold requests with their credentials.
 */
export function chainOf(error: Error): string {
  const seen = new Set<unknown>()
  const text = (current: Error): string => {
    seen.add(current)
    const { cause, errors } = current as { cause?: unknown; errors?: unknown }
    const isNew = (value: unknown): value is Error => isError(value) && !seen.has(value) && seen.size < MAX_ERRORS
    const parts: string[] = []
    if (isNew(cause)) parts.push(`  [cause]: ${indented(text(cause), 2)}`)
    else if (cause !== undefined && cause !== null && !isError(cause)) parts.push(`  [cause]: ${plain(cause)}`)
    const members = Array.isArray(errors)
      ? errors.flatMap(one => (isNew(one) ? [`    ${indented(text(one), 4)}`] : []))
      : []
    if (members.length > 0) parts.push(`  [errors]: [\n${members.join(',\n')}\n  ]`)
    return parts.length === 0 ? stackOf(current) : `${stackOf(current)} {\n${parts.join(',\n')}\n}`
  }
  return text(error).slice(0, MAX_STACK_CHARS)
}

/** Also recognizes errors of other realms, such as those of `node:vm` and of test runners. */
export function isError(value: unknown): value is Error {
  return value instanceof Error || Object.prototype.toString.call(value) === '[object Error]'
}

/** Returns the name of the error, or of its class if that has not set one. */
export function typeOf(error: Error): string {
  const { name } = error
  const ofClass = (error.constructor as { name?: string } | undefined)?.name
  return (name === 'Error' || !name) && ofClass ? ofClass : String(name)
}

/** Returns the stack below the type that the exception is listed with. */
function stackOf(error: Error): string {
  const { stack, message } = error
  if (typeof stack !== 'string' || stack === '') return `[${typeOf(error)}: ${message}]`
  return stack.replace(/^Error(?=[:\n]|$)/, () => typeOf(error))
}

function plain(value: unknown): string {
  return inspect(value, { depth: 0, breakLength: Number.POSITIVE_INFINITY }).slice(0, 1_024)
}

function indented(text: string, by: number): string {
  return text.replaceAll('\n', `\n${' '.repeat(by)}`)
}
