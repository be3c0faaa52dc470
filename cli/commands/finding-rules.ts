import type { Command } from 'commander'
import {
  type FindingRulesAnswer,
  findingRulesAnswerSchema,
  type TriedRules,
  triedRulesSchema,
} from '../../schemas/http/findings/rules.ts'
import type { ReadCommandContext } from '../command-context.ts'
import { connectReader, type ReadOptions, urlOption } from '../reads/api-reader.ts'
import { addReplaceRules, addShowRules, knownRules, type RulesKind, rulesHelp } from '../reads/rules-commands.ts'
import { readRulesFile } from '../reads/rules-file.ts'
import { counted, printable } from '../terminal.ts'

type Rule = FindingRulesAnswer['rules'][number]

const KIND: RulesKind<Rule, FindingRulesAnswer> = {
  name: 'grouping',
  path: '/v3/finding-rules',
  schema: findingRulesAnswerSchema,
  readBy: '"try" and "replace" read',
  example: { command: 'findings rules', file: 'rules.json' },
  columns: ['RULE', 'IF', 'THEN'],
  widths: [24, 44, 44],
  cellsOf,
  note: ({ isApplied }) => (isApplied ? undefined : 'stored exceptions are still being grouped by them'),
  effectOf: ({ isApplied }) =>
    isApplied ? 'stored exceptions are grouped by them' : 'stored exceptions move within minutes',
}

/** Adds `findings rules` with `show`, `try` and `replace`. */
export function addFindingRules(findings: Command, context: ReadCommandContext): void {
  const rules = findings.command('rules').description('read, try and replace the rules by which exceptions are grouped')
  addShowRules(rules, context, KIND)
  rules
    .command('try')
    .description('state what the rules of a file would change, without keeping them')
    .argument('<file>', 'a file in the form of "show --json", or - for standard input')
    .addOption(urlOption())
    .option('--json', 'print the answer of the API')
    .addHelpText('after', rulesHelp('findings rules try rules.json'))
    .action(async (file: string, options: ReadOptions) => {
      const reader = await connectReader(context, options)
      const { rules: read } = await readRulesFile(file)
      const tried = knownRules(await reader.post(`${KIND.path}/try`, { rules: read }, triedRulesSchema), KIND)
      if (options.json) return context.print(JSON.stringify(tried))
      for (const line of describeTried(tried)) context.print(printable(line))
    })
  addReplaceRules(rules, context, KIND)
}

function cellsOf(rule: Rule): readonly string[] {
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
