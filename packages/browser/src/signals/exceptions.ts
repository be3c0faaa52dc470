import type { Attributes } from '../options.ts'
import { cut } from './otlp.ts'

/** Causes of an error that are read. Further ones, and repeated ones, are left out. */
const MAX_CAUSES = 10
/** Errors of an `AggregateError` that are read. */
const MAX_ERRORS = 5

/** Returns the attributes of OpenTelemetry for what was thrown. The stacks of causes follow that of the error. */
export function exceptionAttributes(thrown: unknown): Attributes {
  if (!isError(thrown)) {
    return { 'exception.type': typeName(thrown), 'exception.message': cut(describe(thrown)) }
  }
  const stack = stackWithCauses(thrown, new Set())
  return {
    'exception.type': String(thrown.name || thrown.constructor?.name || 'Error'),
    'exception.message': cut(String(thrown.message)),
    'exception.stacktrace': cut(stack),
    'exception.debug_ids': debugIdsOf(stack),
  }
}

/** Errors of another frame have another class `Error`. */
function isError(value: unknown): value is Error {
  return (
    value instanceof Error || (typeof value === 'object' && value !== null && 'message' in value && 'stack' in value)
  )
}

function stackWithCauses(error: Error, seen: Set<unknown>): string {
  seen.add(error)
  const parts = [stackOf(error)]
  const { cause } = error
  const { errors } = error as Partial<AggregateError>
  for (const inner of Array.isArray(errors) ? errors.slice(0, MAX_ERRORS) : []) {
    if (isError(inner) && !seen.has(inner)) parts.push(`Caused by: ${stackWithCauses(inner, seen)}`)
  }
  if (isError(cause) && !seen.has(cause) && seen.size <= MAX_CAUSES) {
    parts.push(`Caused by: ${stackWithCauses(cause, seen)}`)
  } else if (cause !== undefined && !isError(cause)) parts.push(`Caused by: ${describe(cause)}`)
  return parts.join('\n')
}

/** A first line that is a frame of Firefox or Safari. */
const FIRST_FRAME = /^[^\n]*@(?:[a-z-]+:\/\/|\[native code\])/

/** Returns the stack with its message. Those of Firefox and Safari begin with the first frame. */
function stackOf(error: Error): string {
  const head = `${error.name}: ${error.message}`
  const stack = String(error.stack ?? '')
  if (stack === '') return head
  return !stack.startsWith(error.name) && FIRST_FRAME.test(stack) ? `${head}\n${stack}` : stack
}

function typeName(thrown: unknown): string {
  if (thrown === null) return 'null'
  return typeof thrown === 'object' ? (thrown.constructor?.name ?? 'Object') : typeof thrown
}

function describe(thrown: unknown): string {
  try {
    return typeof thrown === 'object' ? (JSON.stringify(thrown) ?? String(thrown)) : String(thrown)
  } catch {
    // A cycle, a getter that throws, or an object without a text.
    return Object.prototype.toString.call(thrown)
  }
}

/** Where bundles that `@penstock/build` has prepared state their debug ids: the stack of each bundle → its id. */
interface DebugIdGlobal {
  readonly _penstockDebugIds?: Readonly<Record<string, string>>
}

/** Addresses of scripts by the stacks in which they were found, because a page has few and asks often. */
const scriptsOfStacks = new Map<string, string>()

/** Returns the debug ids of the scripts in a stack, as the attribute has them, or undefined if none is known. */
function debugIdsOf(stack: string): string | undefined {
  const known = (globalThis as DebugIdGlobal)._penstockDebugIds
  if (known === undefined) return undefined
  const found: Record<string, string> = {}
  for (const [from, debugId] of Object.entries(known)) {
    const script = scriptsOfStacks.get(from) ?? scriptIn(from)
    scriptsOfStacks.set(from, script)
    if (script !== '' && stack.includes(script)) found[script] = debugId
  }
  return Object.keys(found).length === 0 ? undefined : JSON.stringify(found)
}

/** Returns the address of the first script in a stack, without line and column. It may have a port. */
function scriptIn(stack: string): string {
  return /((?:https?|file|capacitor|app):\/\/[^\s)]+?)(?::\d+){1,2}(?=[\s)]|$)/.exec(stack)?.[1] ?? ''
}
