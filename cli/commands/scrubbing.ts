import type { Command } from 'commander'
import {
  type ScrubbingAnswer,
  scrubbingAnswerSchema,
  triedScrubbingSchema,
} from '../../schemas/http/privacy/scrubbing.ts'
import type { ReadCommandContext } from '../command-context.ts'
import { connectReader, type ReadOptions, urlOption } from '../reads/api-reader.ts'
import { addReplaceRules, addShowRules, knownRules, type RulesKind, rulesHelp } from '../reads/rules-commands.ts'
import { readRulesFile } from '../reads/rules-file.ts'
import { counted, printable } from '../terminal.ts'

type Rule = ScrubbingAnswer['rules'][number]

const KIND: RulesKind<Rule, ScrubbingAnswer> = {
  name: 'scrubbing',
  path: '/v3/scrubbing',
  schema: scrubbingAnswerSchema,
  readBy: '"try" and "replace" read',
  example: { command: 'scrubbing', file: 'scrubbing.json' },
  columns: ['RULE', 'ACTION', 'APPLIES TO'],
  widths: [24, 8, 80],
  cellsOf({ name, action, keys, values, pattern, fields }) {
    const places = [...(keys ?? []), ...(values ?? []), ...(fields ?? [])].join(', ')
    return [name, action, pattern === undefined ? places : `${pattern} in ${places}`]
  },
  effectOf: () => 'new data is scrubbed by them',
}

/** Adds `scrubbing` with `show`, `try` and `replace`. */
export function addScrubbing(parent: Command, context: ReadCommandContext): void {
  const command = parent
    .command('scrubbing')
    .description('read, try and replace the rules by which values are scrubbed before they are stored')
  addShowRules(command, context, KIND)
  command
    .command('try')
    .description('show what the rules of a file would make of attributes, without keeping them')
    .argument('<file>', 'a file in the form of "show --json", or - for standard input')
    .argument('<attribute...>', 'attributes, each as key=value')
    .addOption(urlOption())
    .option('--json', 'print the answer of the API')
    .addHelpText('after', rulesHelp('scrubbing try scrubbing.json "http.request.header.cookie=id=42"'))
    .action(async (file: string, pairs: string[], options: ReadOptions) => {
      const reader = await connectReader(context, options)
      const { rules } = await readRulesFile(file)
      const body = { rules, attributes: Object.fromEntries(pairs.map(pairOf)) }
      const tried = knownRules(await reader.post(`${KIND.path}/try`, body, triedScrubbingSchema), KIND)
      if (options.json) return context.print(JSON.stringify(tried))
      for (const [key, value] of Object.entries(tried.attributes)) context.print(printable(`${key}=${value ?? ''}`))
      for (const { name, values } of tried.rules)
        context.print(printable(`${name} replaces ${counted(values, 'value')}`))
    })
  addReplaceRules(command, context, KIND)
}

function pairOf(pair: string): [string, string] {
  const at = pair.indexOf('=')
  return at < 0 ? [pair, ''] : [pair.slice(0, at), pair.slice(at + 1)]
}
