import type { Command } from 'commander'
import type { z } from 'zod'
import type { ReadCommandContext } from '../command-context.ts'
import { EXIT, exitCodesHelp } from '../exit-codes.ts'
import { counted, rowOf } from '../terminal.ts'
import { ACCESS_HELP, ApiRefusal, connectReader, type ReadOptions, urlOption } from './api-reader.ts'
import { readRulesFile } from './rules-file.ts'

/** Rules of a workspace, as the API answers them. */
interface RulesAnswer<R> {
  readonly revision: number
  readonly rules: readonly R[]
}

/** A kind of rules of a workspace, and how it is shown. */
export interface RulesKind<R, A extends RulesAnswer<R>> {
  /** Names the rules, as in "no rules of scrubbing". */
  readonly name: string
  readonly path: string
  readonly schema: z.ZodType<A>
  /** The commands that read a file with rules. */
  readonly readBy: string
  /** The command before `show`, and the file in its examples. */
  readonly example: { readonly command: string; readonly file: string }
  readonly columns: readonly string[]
  readonly widths: readonly number[]
  readonly cellsOf: (rule: R) => readonly string[]
  /** Returns the other lists of the document, in the form in which a file has them. */
  readonly besides?: (answer: Omit<A, 'rules'>) => object
  /** A line below the rules. */
  readonly note?: (answer: A) => string | undefined
  /** Returns the effect of rules that have been replaced, for people. */
  readonly effectOf: (answer: A) => string
}

/** Adds `show`. */
export function addShowRules<R, A extends RulesAnswer<R>>(
  parent: Command,
  context: ReadCommandContext,
  kind: RulesKind<R, A>,
): void {
  const { path, schema, columns, widths, cellsOf, note, example } = kind
  parent
    .command('show')
    .description('show the rules, the first match of which decides')
    .addOption(urlOption())
    .option('--json', `print them in the form that ${kind.readBy}`)
    .addHelpText('after', rulesHelp(`${example.command} show --json > ${example.file}`))
    .action(async (options: ReadOptions) => {
      const reader = await connectReader(context, options)
      const answer = knownRules(await reader.get(path, schema), kind)
      const { revision, rules } = answer
      if (options.json)
        return context.print(JSON.stringify({ revision, ...kind.besides?.(answer), rules }, undefined, 2))
      context.print(rowOf(columns, widths))
      for (const rule of rules) context.print(rowOf(cellsOf(rule), widths))
      const line = note?.(answer)
      if (line !== undefined) context.print(line)
    })
}

/** Adds `replace`. */
export function addReplaceRules<R, A extends RulesAnswer<R>>(
  parent: Command,
  context: ReadCommandContext,
  kind: RulesKind<R, A>,
): void {
  const { path, schema, example } = kind
  parent
    .command('replace')
    .description('replace all rules by those of a file')
    .argument('<file>', 'a file in the form of "show --json", or - for standard input')
    .addOption(urlOption())
    .option('--json', 'print the rules after the change')
    .addHelpText('after', rulesHelp(`${example.command} replace ${example.file}`))
    .action(async (file: string, options: ReadOptions) => {
      const reader = await connectReader(context, options)
      const { revision, ...document } = await readRulesFile(file)
      const before = revision ?? knownRules(await reader.get(path, schema), kind).revision
      const after = await reader.put(path, { ...document, revision: before }, schema).catch(error => {
        if (error instanceof ApiRefusal && error.status === 409) return undefined
        throw error
      })
      if (after === undefined)
        return context.exit(EXIT.conflict, `the rules are no longer those of revision ${before}: show them again`)
      if (options.json)
        return context.print(JSON.stringify({ revision: after.revision, ...kind.besides?.(after), rules: after.rules }))
      context.print(`${counted(after.rules.length, 'rule')}, revision ${after.revision}: ${kind.effectOf(after)}`)
    })
}

/** Returns an answer, which only an installation of another version does not have. */
export function knownRules<T>(answer: T | undefined, { name }: { readonly name: string }): T {
  if (answer === undefined) throw new Error(`this installation has no rules of ${name}`)
  return answer
}

/** Returns the help of a command about rules. */
export const rulesHelp = (example: string) => `${ACCESS_HELP}

${exitCodesHelp({
  [EXIT.failed]: 'the API is unavailable, or refuses the token or the rules',
  [EXIT.conflict]: 'the rules have another revision than the file',
})}

Example:
  $ npm run cli -- ${example}`
