import type { StoredFrame } from '../../schemas/http/findings/schemas.ts'
import type { FindingRule } from '../../schemas/records/finding-rules.ts'
import { readStack } from '../stacks/read-stack.ts'
import type { ReadStack } from '../stacks/stack.ts'
import { type ExceptionIdentity, identify } from './fingerprint.ts'
import { mapStack } from './map-stack.ts'
import { type CompiledRules, filesOf, findingOfRule } from './rules.ts'
import { stackToRead } from './stack-to-read.ts'

/** An exception as it is stored. */
export interface StoredException extends ExceptionIdentity {
  /** Its frames that source maps resolved, as JSON; empty if there are none. */
  readonly frames: string
}

/** The finding of an exception. */
interface Grouped {
  readonly findingId: string
  /** The rule that matches, whether it decides on the finding or on its title alone. */
  readonly rule: FindingRule | undefined
}

/** Returns the finding of an exception by its frames and by rules. `read` has the frames that source maps resolved. */
export function groupException(
  exception: ExceptionIdentity,
  rules: CompiledRules,
  stacktrace = stackToRead(exception),
  read = readStack(stacktrace),
): Grouped {
  const { rule } = rules.match({ ...exception, files: () => filesOf(read) })
  const findingId = (rule && findingOfRule(rule, exception)) ?? identify(exception, stacktrace, read).id
  return { findingId, rule }
}

/** Returns the finding of an exception that is stored. */
export function groupStored(exception: StoredException, rules: CompiledRules): Grouped {
  const stacktrace = stackToRead(exception)
  return groupException(exception, rules, stacktrace, readMapped(exception, stacktrace))
}

/** Reads the stack of an exception that is stored, with the frames that source maps resolved. */
export function readMapped({ frames }: Pick<StoredException, 'frames'>, stacktrace: string): ReadStack {
  const read = readStack(stacktrace)
  return frames === '' ? read : mapStack(read, JSON.parse(frames) as StoredFrame[])
}
