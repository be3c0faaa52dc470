import type { Command } from 'commander'
import { type DroppingAnswer, droppingAnswerSchema } from '../../schemas/http/privacy/dropping.ts'
import type { ReadCommandContext } from '../command-context.ts'
import { addReplaceRules, addShowRules, type RulesKind } from '../reads/rules-commands.ts'

type Rule = DroppingAnswer['rules'][number]

const KIND: RulesKind<Rule, DroppingAnswer> = {
  name: 'dropping',
  path: '/v3/dropping',
  schema: droppingAnswerSchema,
  readBy: '"replace" reads',
  example: { command: 'dropping', file: 'dropping.json' },
  columns: ['RULE', 'KEEPS', 'APPLIES TO'],
  widths: [24, 8, 80],
  cellsOf: rule => [rule.name, String(rule.keep ?? 0), conditionsOf(rule)],
  effectOf: () => 'new records are dropped by them',
}

/** Adds `dropping` with `show` and `replace`. */
export function addDropping(parent: Command, context: ReadCommandContext): void {
  const command = parent
    .command('dropping')
    .description('read and replace the rules by which records are dropped before they are stored')
  addShowRules(command, context, KIND)
  addReplaceRules(command, context, KIND)
}

function conditionsOf({ signals, services, names, attributes }: Rule): string {
  const pairs = attributes?.map(({ key, value }) => (value === undefined ? key : `${key}=${value}`))
  const alternatives = [signals, services, names].map(conditions => conditions?.join(' or '))
  return [...alternatives, pairs?.join(' and ')].filter(conditions => conditions !== undefined).join('; ')
}
