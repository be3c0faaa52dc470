import type { FindingGrouping } from '../../schemas/http/findings/schemas.ts'
import type { FindingRule } from '../../schemas/records/finding-rules.ts'
import { basisOf } from '../../shared/grouping/fingerprint.ts'
import { readMapped, type StoredException } from '../../shared/grouping/group-exception.ts'
import { type CompiledRules, compileRules, filesOf, findingOfRule } from '../../shared/grouping/rules.ts'
import { stackToRead } from '../../shared/grouping/stack-to-read.ts'
import type { ReadStack } from '../../shared/stacks/stack.ts'
import { topFrameOf } from '../../shared/stacks/top-frame.ts'

/** Returns by what an exception is grouped, the same that decided on its finding, and its frame that lists show. */
export function explainException(
  exception: StoredException,
  rules: readonly FindingRule[],
): { readonly topFrame: string; readonly grouping: FindingGrouping } {
  const stacktrace = stackToRead(exception)
  const read = readMapped(exception, stacktrace)
  return {
    topFrame: topFrameOf(read),
    grouping: explainGrouping(exception, stacktrace, read, compileRules({ revision: 1, rules: [...rules] })),
  }
}

function explainGrouping(
  exception: StoredException,
  stacktrace: string,
  read: ReadStack,
  rules: CompiledRules,
): FindingGrouping {
  const { rule } = rules.match({ ...exception, files: () => filesOf(read) })
  if (rule?.fingerprint !== undefined) return { by: 'rule', rule: rule.name, fingerprint: rule.fingerprint }
  const { by, fingerprint, chain, type, lines, message } = basisOf(exception, stacktrace, read)
  return {
    by,
    ...(fingerprint !== undefined && { fingerprint }),
    ...(chain && { exceptions: chain.map(({ type, frames }) => ({ type, frames: [...frames] })) }),
    ...(type !== undefined && { type }),
    ...(lines && { lines: [...lines] }),
    ...(message !== undefined && { message }),
  }
}

/** A finding as far as its title depends on it. */
interface TitledFinding {
  readonly id: string
  readonly surfaceId: string
  readonly serviceName: string
  readonly type: string
  readonly message: string
}

/** Returns the title that the rules of a workspace give to a finding, or undefined. */
type TitleOf = (finding: TitledFinding) => string | undefined

/** Returns the titles by rules: that of the first rule whose finding it is, or whose patterns match what is shown of it. */
export function titlesBy(workspaceId: string, rules: readonly FindingRule[]): TitleOf {
  if (rules.every(({ title }) => title === undefined)) return () => undefined
  const each = rules.map(rule => ({ rule, alone: compileRules({ revision: 1, rules: [rule] }) }))
  return ({ id, ...finding }) => {
    const first = each.find(({ rule, alone }) =>
      rule.fingerprint === undefined
        ? alone.match({ ...finding, files: () => [] }).rule !== undefined
        : findingOfRule(rule, { workspaceId, ...finding }) === id,
    )
    return first?.rule.title
  }
}
