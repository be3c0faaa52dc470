import { type Command, InvalidArgumentError } from 'commander'
import { findingChangedSchema, findingIdSchema } from '../../schemas/http/findings/schemas.ts'
import type { ReadCommandContext } from '../command-context.ts'
import { EXIT, exitCodesHelp } from '../exit-codes.ts'
import { ACCESS_HELP, connectReader, type ReadOptions, urlOption } from '../reads/api-reader.ts'
import { counted } from '../terminal.ts'

const FAILURES = exitCodesHelp({
  [EXIT.failed]: 'the API is unavailable or refuses the token or the request',
  [EXIT.notFound]: 'there is no such finding',
})

/** Adds `findings merge` and `findings split`. */
export function addFindingMerges(findings: Command, context: ReadCommandContext): void {
  // Options after the word are those of the command.
  findings.enablePositionalOptions()
  addMerge(findings, context)
  addSplit(findings, context)
}

function addMerge(findings: Command, context: ReadCommandContext): void {
  findings
    .command('merge')
    .description('merge findings into the one of them that was seen first')
    .argument('<id>', 'a finding', findingId)
    .argument('<ids...>', 'the findings to merge it with', findingIds)
    .addOption(urlOption())
    .option('--json', 'print the finding that stays as the API returns it')
    .addHelpText('after', helpOf('findings merge fnd_… fnd_…'))
    .action(async (id: string, ids: readonly string[], options: ReadOptions) => {
      await post(context, options, `${id}/merge`, { findingIds: ids })
    })
}

function addSplit(findings: Command, context: ReadCommandContext): void {
  findings
    .command('split')
    .description('make a merged finding one of its own again')
    .argument('<id>', 'the finding that it is merged into', findingId)
    .argument('<merged>', 'the merged finding', findingId)
    .addOption(urlOption())
    .option('--json', 'print the finding that was split off as the API returns it')
    .addHelpText('after', helpOf('findings split fnd_… fnd_…'))
    .action(async (id: string, merged: string, options: ReadOptions) => {
      await post(context, options, `${id}/split`, { findingId: merged })
    })
}

/** Sends a change and prints the finding of the answer. */
async function post(context: ReadCommandContext, options: ReadOptions, path: string, body: object): Promise<void> {
  const reader = await connectReader(context, options)
  const answer = await reader.post(`/v3/findings/${path}`, body, findingChangedSchema)
  if (answer === undefined) return context.exit(EXIT.notFound, 'there is no such finding, or it is no longer retained')
  const { finding } = answer
  const { id, occurrenceCount } = finding
  context.print(options.json ? JSON.stringify(finding) : `${id} has ${counted(occurrenceCount, 'occurrence')}`)
}

function findingId(text: string): string {
  if (!findingIdSchema.safeParse(text).success) {
    throw new InvalidArgumentError('It must be the id of a finding, such as fnd_4g6peb7eom2yodowmzpd5xfhbe.')
  }
  return text
}

/** Adds an id to those before it. */
function findingIds(text: string, before: readonly string[] | undefined): string[] {
  return [...(before ?? []), findingId(text)]
}

const helpOf = (example: string) => `${ACCESS_HELP}

${FAILURES}

Example:
  $ npm run cli -- ${example}`
