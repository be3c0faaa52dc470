import { type FileHandle, open } from 'node:fs/promises'
import type { Command } from 'commander'
import { LineError } from '../../../shared/directory/export/read-lines.ts'
import { describeError } from '../../../shared/runtime/errors.ts'
import type { DirectoryCommandContext } from '../../command-context.ts'
import { type ImportOutcome, importDirectory } from '../../directory/import.ts'
import { EXIT, exitCodesHelp } from '../../exit-codes.ts'
import { printable } from '../../terminal.ts'

const HELP = `
Reads the output of "directory export" from a file or from stdin, and stores it in the directory, line by line. A
record that exists and is equal stays. A record that exists and differs stays as well, and is reported, unless
--replace overwrites it: a key that was revoked since the export then becomes valid again. Nothing is removed, and
records that were removed since the export come back. The following records are never stored, not even with --replace:
a key with the digest of another key, or of a workspace with the id of another key; a manifest older than the current
one, because its object may be deleted; a workspace with the slug of another workspace, and everything that belongs to
it. An import can be repeated after any failure. To move an installation, import before an edge has run on the new
directory, because the edge would create a different secret for receipts.

${exitCodesHelp({
  [EXIT.done]: 'everything is stored as in the lines',
  [EXIT.failed]: 'the directory is unavailable; records that were stored stay',
  [EXIT.usage]: 'a line is invalid or the last line is missing; or the arguments or the environment are invalid',
  [EXIT.conflict]: 'some records differ from the stored ones and were not changed',
})}

Examples:
  $ npm run cli -- directory import directory.jsonl --dry-run
  $ DIRECTORY_REDIS_URL=redis://new.example:6379 npm run cli -- directory import directory.jsonl`

const CONFLICTS_SHOWN = 20

interface ImportCommandOptions {
  readonly replace?: boolean
  readonly dryRun?: boolean
  readonly json?: boolean
}

/** Adds `directory import`. */
export function addDirectoryImport(parent: Command, context: DirectoryCommandContext): void {
  parent
    .command('import')
    .description('store records from lines of JSON')
    .argument('[file]', 'the file to read; without it, stdin')
    .option('--replace', 'overwrite records that differ')
    .option('--dry-run', 'read everything and report what would be done')
    .option('--json', 'print the outcome as JSON')
    .addHelpText('after', HELP)
    .action((file: string | undefined, options: ImportCommandOptions) => runImport(file, options, context))
}

async function runImport(
  path: string | undefined,
  { replace = false, dryRun = false, json = false }: ImportCommandOptions,
  context: DirectoryCommandContext,
): Promise<void> {
  const { print, printError, withDirectory, exit, now, stdin } = context
  let conflicts = 0
  const onConflict = (message: string) => {
    if (conflicts++ < CONFLICTS_SHOWN) printError(printable(message))
  }
  let file: FileHandle | undefined
  try {
    file = path === undefined ? undefined : await open(path)
  } catch (error) {
    printError(`the file cannot be read: ${describeError(error)}`)
    return exit(EXIT.usage)
  }
  await withDirectory(async directory => {
    try {
      const pieces = file?.createReadStream() ?? stdin
      const outcome = await importDirectory(directory, pieces, { replace, dryRun, now, onConflict })
      if (conflicts > CONFLICTS_SHOWN) printError(`… and ${conflicts - CONFLICTS_SHOWN} more`)
      print(json ? JSON.stringify(outcome) : describe(outcome, dryRun))
      if (outcome.conflicts > 0) exit(EXIT.conflict)
    } catch (error) {
      if (!(error instanceof LineError)) throw error
      printError(printable(error.message))
      exit(EXIT.usage)
    }
  }).finally(() => file?.close())
}

function describe({ added, unchanged, replaced, conflicts }: ImportOutcome, dryRun: boolean): string {
  const left = conflicts > 0 ? `, ${conflicts} not changed because they differ` : ''
  return `${dryRun ? 'would be: ' : ''}${added} added, ${unchanged} unchanged, ${replaced} replaced${left}`
}
