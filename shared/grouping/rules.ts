import { hash } from 'node:crypto'
import type { FindingRule, FindingRules } from '../../schemas/records/finding-rules.ts'
import type { ReadStack } from '../stacks/stack.ts'
import { type ExceptionIdentity, findingIdOf } from './fingerprint.ts'
import { compilePattern } from './pattern.ts'

/** Characters of a type and a message that are compared. All rules of a workspace take at most as long as reading a stack. */
const COMPARED_CHARACTERS = 500
/** Files of a stack that are compared. */
const COMPARED_FILES = 50

/** An exception to which rules are applied. */
export interface RuledException extends Pick<ExceptionIdentity, 'type' | 'message' | 'serviceName'> {
  /** The files of its stack (`filesOf`). Called at most once, and only if a rule names a file. */
  readonly files: () => readonly string[]
}

/** The outcome of comparing rules with an exception. */
interface RuleMatch {
  /** The first rule that matches. */
  readonly rule: FindingRule | undefined
  /** The messages of rules that were compared, after `+` if they matched: exceptions with this stack may have another rule. */
  readonly compared: readonly string[]
}

/** The rules of a workspace, ready to be applied. */
export interface CompiledRules {
  /** 0 for a workspace that never had rules. */
  readonly revision: number
  readonly rules: readonly FindingRule[]
  match(exception: RuledException): RuleMatch
}

const NO_MATCH: RuleMatch = { rule: undefined, compared: [] }

/** The rules of a workspace without any. */
export const NO_RULES: CompiledRules = { revision: 0, rules: [], match: () => NO_MATCH }

/** Compiles rules. */
export function compileRules({ revision, rules }: Pick<FindingRules, 'revision' | 'rules'>): CompiledRules {
  const compiled = rules.map(rule => ({
    rule,
    type: compile(rule.type),
    message: compile(rule.message),
    file: compile(rule.file),
    service: compile(rule.service),
  }))
  return {
    revision,
    rules,
    match({ type, message, serviceName, files }) {
      if (compiled.length === 0) return NO_MATCH
      const [shortType, shortMessage] = [type.slice(0, COMPARED_CHARACTERS), message.slice(0, COMPARED_CHARACTERS)]
      const compared: string[] = []
      let known: readonly string[] | undefined
      for (const one of compiled) {
        if (one.service?.(serviceName) === false || one.type?.(shortType) === false) continue
        // Before the file: source maps that come later may tell another one.
        const hasMessage = one.message?.(shortMessage)
        if (hasMessage !== undefined) compared.push(`${hasMessage ? '+' : '-'}${one.rule.message}`)
        if (hasMessage === false) continue
        if (one.file !== undefined) {
          known ??= files()
          if (!known.some(one.file)) continue
        }
        return { rule: one.rule, compared }
      }
      return { rule: undefined, compared }
    },
  }
}

function compile(pattern: string | undefined): ((text: string) => boolean) | undefined {
  return pattern === undefined ? undefined : compilePattern(pattern)
}

/** Returns the files and modules of the frames of the application, of all frames if there are none. */
export function filesOf({ links }: ReadStack): readonly string[] {
  const all = links.flatMap(({ frames }) => frames)
  const own = all.filter(frame => frame.inApp)
  const names = (own.length > 0 ? own : all).flatMap(({ file, module }) => [file, module]).filter(name => name !== '')
  return [...new Set(names)].slice(0, COMPARED_FILES)
}

/**
 * Returns the finding of a rule, or undefined if it has none. It has the matching exceptions of one service of a surface. `{type}`
 * in the fingerprint is the type of the exception.
 */
export function findingOfRule(
  { fingerprint }: FindingRule,
  { workspaceId, surfaceId, serviceName, type }: Omit<ExceptionIdentity, 'message' | 'stacktrace'>,
): string | undefined {
  if (fingerprint === undefined) return undefined
  const filled = fingerprint.replaceAll('{type}', () => type)
  return findingIdOf([workspaceId, surfaceId, serviceName, 'rule', filled]).id
}

/**
 * Returns the variant of an exception after rules. Exceptions of one stack have several if messages decide, because the exceptions
 * of a variant are of one finding.
 */
export function variantAfterRules(variantId: Buffer, { compared }: RuleMatch): Buffer {
  if (compared.length === 0) return variantId
  const decided = JSON.stringify([variantId.toString('hex'), compared])
  return Buffer.concat([variantId.subarray(0, 8), hash('sha256', decided, 'buffer').subarray(0, 8)])
}
