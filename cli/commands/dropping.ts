import type { Command } from 'commander'
import { type DroppingAnswer, droppingAnswerSchema } from '../../schemas/http/privacy/dropping.ts'
import type { ReadCommandContext } from '../command-context.ts'
import { EXIT, exitCodesHelp } from '../exit-codes.ts'
import { ACCESS_HELP, ApiRefusal, connectReader, type ReadOptions, urlOption } from '../reads/api-reader.ts'
import { readRulesFile } from '../reads/rules-file.ts'
import { counted, rowOf } from '../terminal.ts'

const PATH = '/v3/dropping'
const WIDTHS = [24, 8, 80]

const helpOf = (example: string) => `${ACCESS_HELP}

${exitCodesHelp({
  [EXIT.failed]: 'the API is unavailable, or refuses the token or the rules',
  [EXIT.conflict]: 'the rules have changed since they were shown',
})}

Example:
  $ npm run cli -- ${example}`

/** Adds `dropping` with `show` and `replace`. */
export function addDropping(parent: Command, context: ReadCommandContext): void {
  const command = parent
    .command('dropping')
    .description('read and replace the rules by which records are dropped before they are stored')
  command
    .command('show')
    .description('show the rules, the first match of which decides')
    .addOption(urlOption())
    .option('--json', 'print them in the form that "replace" reads')
    .addHelpText('after', helpOf('dropping show --json > dropping.json'))
    .action(async (options: ReadOptions) => {
      const reader = await connectReader(context, options)
      const { revision, rules } = known(await reader.get(PATH, droppingAnswerSchema))
      if (options.json) return context.print(JSON.stringify({ revision, rules }, undefined, 2))
      context.print(rowOf(['RULE', 'KEEPS', 'APPLIES TO'], WIDTHS))
      for (const rule of rules) context.print(rowOf([rule.name, String(rule.keep ?? 0), conditionsOf(rule)], WIDTHS))
    })
  command
    .command('replace')
    .description('replace all rules by those of a file')
    .argument('<file>', 'a file in the form of "show --json", or - for standard input')
    .addOption(urlOption())
    .option('--json', 'print the rules after the change')
    .addHelpText('after', helpOf('dropping replace dropping.json'))
    .action(async (file: string, options: ReadOptions) => {
      const reader = await connectReader(context, options)
      const { rules, revision } = await readRulesFile(file)
      const before = revision ?? known(await reader.get(PATH, droppingAnswerSchema)).revision
      const after = await reader.put(PATH, { revision: before, rules }, droppingAnswerSchema).catch(error => {
        if (error instanceof ApiRefusal && error.status === 409) return undefined
        throw error
      })
      if (after === undefined)
        return context.exit(EXIT.conflict, `the rules are no longer those of revision ${before}: show them again`)
      if (options.json) return context.print(JSON.stringify({ revision: after.revision, rules: after.rules }))
      context.print(
        `${counted(after.rules.length, 'rule')}, revision ${after.revision}: new records are dropped by them`,
      )
    })
}

function conditionsOf({ signals, services, names, attributes }: DroppingAnswer['rules'][number]): string {
  const pairs = attributes?.map(({ key, value }) => (value === undefined ? key : `${key}=${value}`))
  const alternatives = [signals, services, names].map(conditions => conditions?.join(' or '))
  return [...alternatives, pairs?.join(' and ')].filter(conditions => conditions !== undefined).join('; ')
}

/** Returns an answer, which only an installation of another version does not have. */
function known<T>(answer: T | undefined): T {
  if (answer === undefined) throw new Error('this installation has no rules of dropping')
  return answer
}
