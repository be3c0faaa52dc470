import type { Command } from 'commander'
import { scrubbingAnswerSchema, triedScrubbingSchema } from '../../schemas/http/privacy/scrubbing.ts'
import type { ReadCommandContext } from '../command-context.ts'
import { EXIT, exitCodesHelp } from '../exit-codes.ts'
import { ACCESS_HELP, ApiRefusal, connectReader, type ReadOptions, urlOption } from '../reads/api-reader.ts'
import { readRulesFile } from '../reads/rules-file.ts'
import { counted, printable, rowOf } from '../terminal.ts'

const PATH = '/v3/scrubbing'
const WIDTHS = [24, 8, 80]

const helpOf = (example: string) => `${ACCESS_HELP}

${exitCodesHelp({
  [EXIT.failed]: 'the API is unavailable, or refuses the token or the rules',
  [EXIT.conflict]: 'the rules have changed since they were shown',
})}

Example:
  $ npm run cli -- ${example}`

/** Adds `scrubbing` with `show`, `try` and `replace`. */
export function addScrubbing(parent: Command, context: ReadCommandContext): void {
  const command = parent
    .command('scrubbing')
    .description('read, try and replace the rules by which values are scrubbed before they are stored')
  command
    .command('show')
    .description('show the rules, the first match of which decides')
    .addOption(urlOption())
    .option('--json', 'print them in the form that "try" and "replace" read')
    .addHelpText('after', helpOf('scrubbing show --json > scrubbing.json'))
    .action(async (options: ReadOptions) => {
      const reader = await connectReader(context, options)
      const { revision, rules } = known(await reader.get(PATH, scrubbingAnswerSchema))
      if (options.json) return context.print(JSON.stringify({ revision, rules }, undefined, 2))
      context.print(rowOf(['RULE', 'ACTION', 'APPLIES TO'], WIDTHS))
      for (const { name, action, keys, values, pattern, fields } of rules) {
        const places = [...(keys ?? []), ...(values ?? []), ...(fields ?? [])].join(', ')
        context.print(rowOf([name, action, pattern === undefined ? places : `${pattern} in ${places}`], WIDTHS))
      }
    })
  command
    .command('try')
    .description('show what the rules of a file would make of attributes, without keeping them')
    .argument('<file>', 'a file in the form of "show --json", or - for standard input')
    .argument('<attribute...>', 'attributes, each as key=value')
    .addOption(urlOption())
    .option('--json', 'print the answer of the API')
    .addHelpText('after', helpOf('scrubbing try scrubbing.json "http.request.header.cookie=id=42"'))
    .action(async (file: string, pairs: string[], options: ReadOptions) => {
      const reader = await connectReader(context, options)
      const { rules } = await readRulesFile(file)
      const body = { rules, attributes: Object.fromEntries(pairs.map(pairOf)) }
      const tried = known(await reader.post(`${PATH}/try`, body, triedScrubbingSchema))
      if (options.json) return context.print(JSON.stringify(tried))
      for (const [key, value] of Object.entries(tried.attributes)) context.print(printable(`${key}=${value ?? ''}`))
      for (const { name, values } of tried.rules)
        context.print(printable(`${name} replaces ${counted(values, 'value')}`))
    })
  command
    .command('replace')
    .description('replace all rules by those of a file')
    .argument('<file>', 'a file in the form of "show --json", or - for standard input')
    .addOption(urlOption())
    .option('--json', 'print the rules after the change')
    .addHelpText('after', helpOf('scrubbing replace scrubbing.json'))
    .action(async (file: string, options: ReadOptions) => {
      const reader = await connectReader(context, options)
      const { rules, revision } = await readRulesFile(file)
      const before = revision ?? known(await reader.get(PATH, scrubbingAnswerSchema)).revision
      const after = await reader.put(PATH, { revision: before, rules }, scrubbingAnswerSchema).catch(error => {
        if (error instanceof ApiRefusal && error.status === 409) return undefined
        throw error
      })
      if (after === undefined)
        return context.exit(EXIT.conflict, `the rules are no longer those of revision ${before}: show them again`)
      if (options.json) return context.print(JSON.stringify({ revision: after.revision, rules: after.rules }))
      context.print(`${counted(after.rules.length, 'rule')}, revision ${after.revision}: new data is scrubbed by them`)
    })
}

function pairOf(pair: string): [string, string] {
  const at = pair.indexOf('=')
  return at < 0 ? [pair, ''] : [pair.slice(0, at), pair.slice(at + 1)]
}

/** Returns an answer, which only an installation of another version does not have. */
function known<T>(answer: T | undefined): T {
  if (answer === undefined) throw new Error('this installation has no rules of scrubbing')
  return answer
}
