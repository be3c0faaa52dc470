import type { Command } from 'commander'
import {
  type FindingRulesAnswer,
  findingRulesAnswerSchema,
  type TriedRules,
  triedRulesSchema,
} from '../../schemas/http/findings/rules.ts'
import type { ReadCommandContext } from '../command-context.ts'
import { EXIT, exitCodesHelp } from '../exit-codes.ts'
import { ACCESS_HELP, ApiRefusal, connectReader, type ReadOptions, urlOption } from '../reads/api-reader.ts'
import { readRulesFile } from '../reads/rules-file.ts'
import { counted, printable, rowOf } from '../terminal.ts'

const PATH = '/v3/finding-rules'
const WIDTHS = [24, 44, 44]

/** Adds `findings rules` with `show`, `try` and `replace`. */
export function addFindingRules(findings: Command, context: ReadCommandContext): void {
  const rules = findings.command('rules').description('read, try and replace the rules by which exceptions are grouped')
  rules
    .command('show')
    .description('show the rules, the first match of which decides')
    .addOption(urlOption())
    .option('--json', 'print them in the form that "try" and "replace" read')
    .addHelpText('after', helpOf('findings rules show --json > rules.json'))
    .action(async (options: ReadOptions) => {
      const reader = await connectReader(context, options)
      const { revision, rules: kept, isApplied } = known(await reader.get(PATH, findingRulesAnswerSchema))
      if (options.json) return context.print(JSON.stringify({ revision, rules: kept }, undefined, 2))
      context.print(rowOf(['RULE', 'IF', 'THEN'], WIDTHS))
      for (const rule of kept) context.print(rowOf(cellsOf(rule), WIDTHS))
      if (!isApplied) context.print('stored exceptions are still being grouped by them')
    })
  rules
    .command('try')
    .description('state what the rules of a file would change, without keeping them')
    .argument('<file>', 'a file in the form of "show --json", or - for standard input')
    .addOption(urlOption())
    .option('--json', 'print the answer of the API')
    .addHelpText('after', helpOf('findings rules try rules.json'))
    .action(async (file: string, options: ReadOptions) => {
      const reader = await connectReader(context, options)
      const { rules: read } = await readRulesFile(file)
      const tried = known(await reader.post(`${PATH}/try`, { rules: read }, triedRulesSchema))
      if (options.json) return context.print(JSON.stringify(tried))
      for (const line of describeTried(tried)) context.print(printable(line))
    })
  rules
    .command('replace')
    .description('replace all rules by those of a file')
    .argument('<file>', 'a file in the form of "show --json", or - for standard input')
    .addOption(urlOption())
    .option('--json', 'print the rules after the change')
    .addHelpText('after', helpOf('findings rules replace rules.json'))
    .action(async (file: string, options: ReadOptions) => {
      const reader = await connectReader(context, options)
      const { rules: read, revision } = await readRulesFile(file)
      const before = revision ?? known(await reader.get(PATH, findingRulesAnswerSchema)).revision
      const body = { revision: before, rules: read }
      const after = await reader.put(PATH, body, findingRulesAnswerSchema).catch(error => {
        if (error instanceof ApiRefusal && error.status === 409) return undefined
        throw error
      })
      if (after === undefined)
        return context.exit(EXIT.conflict, `the rules are no longer those of revision ${before}: show them again`)
      if (options.json) return context.print(JSON.stringify({ revision: after.revision, rules: after.rules }))
      const stored = after.isApplied ? 'stored exceptions are grouped by them' : 'stored exceptions move within minutes'
      context.print(`${counted(after.rules.length, 'rule')}, revision ${after.revision}: ${stored}`)
    })
}

/** Returns an answer, which only an installation of another version does not have. */
function known<T>(answer: T | undefined): T {
  if (answer === undefined) throw new Error('this installation has no rules of grouping')
  return answer
}

function cellsOf(rule: FindingRulesAnswer['rules'][number]): readonly string[] {
  const { name, fingerprint, title, ...patterns } = rule
  const conditions = Object.entries(patterns).map(([field, pattern]) => `${field} is ${pattern}`)
  const effects = [fingerprint && `fingerprint ${fingerprint}`, title && `title ${title}`].filter(Boolean)
  return [name, conditions.join(', '), effects.join(', ')]
}

function describeTried({ stacks, moved, findingsBefore, findingsAfter, rules, examples }: TriedRules): string[] {
  return [
    `${moved} of ${counted(stacks, 'stack')} would move: ${counted(findingsAfter, 'finding')} instead of ${findingsBefore}`,
    ...rules.map(({ name, stacks: ofRule }) => `${name} decides on ${counted(ofRule, 'stack')}`),
    ...examples.map(
      ({ type, message, serviceName, findingBefore, findingAfter }) =>
        `  ${findingBefore} to ${findingAfter}  ${serviceName}  ${type}: ${message.split('\n', 1)[0]}`,
    ),
  ]
}

const FAILURES = exitCodesHelp({
  [EXIT.failed]: 'the API is unavailable, or refuses the token or the rules',
  [EXIT.conflict]: 'the rules have another revision than the file',
})

const helpOf = (example: string) => `${ACCESS_HELP}

${FAILURES}

Example:
  $ npm run cli -- ${example}`
