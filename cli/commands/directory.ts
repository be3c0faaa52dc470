import { type FileHandle, open } from 'node:fs/promises'
import { type Command, Option } from 'commander'
import { describeError } from '../../shared/runtime/errors.ts'
import type { DirectoryCommandContext } from '../command-context.ts'
import { exportDirectory } from '../directory/export.ts'
import { type ImportOutcome, importDirectory } from '../directory/import.ts'
import { LineError } from '../directory/read-lines.ts'
import { EXIT } from '../exit-codes.ts'
import { printable } from '../terminal.ts'

const EXPORT_HELP = `
Prints users, workspaces, members, surfaces, keys, releases with the manifests that hold, and which source maps are stored,
as one line of JSON each: { "kind": …, "record": { "version": 1, … } }, the last of the kind "end". Of a key there are
digest and salt, never its text: it goes on working where the lines are imported, and the request that made it is answered
as before. The secret that ids of receipts are sealed with is printed as it is: keep the output to yourself. Objects
(manifests, maps) are in the object store, which moves by itself; KEY_PEPPER moves with the settings. What waits in the
queues, parts of source maps among it, is in the Redis of the queues (REDIS_URL) and is not printed.

Each record is as it was when it was read. What is changed meanwhile is in the output or not: to move an installation,
stop edge and API and let the workers empty the queues first; a backup that was taken while they ran may be imported too.

Exit codes:
  0  everything was printed
  1  the directory could not be used, or a record in it cannot be read; what was printed is not whole
  2  the arguments or the environment are wrong

Example:
  $ npm run --silent cli -- directory export > directory.jsonl`

const IMPORT_HELP = `
Reads what "directory export" has printed, from a file or from stdin, and puts it into the directory, line by line. What
is there and the same stays; what is there and differs stays too, and is named, unless --replace overwrites it: a key that
was revoked since then works again. Nothing is removed, and what was removed since comes back. Left out, with --replace
too, are: a key with the digest of another, and one of a workspace with the id of another; a manifest older than the one
that holds, since its object may be gone; a workspace with the slug of another, and all that belongs to it. It may be run
again, whenever it ended. To move an installation, import before an edge has run on the new directory: it would make a
secret of receipts of its own.

Exit codes:
  0   everything is there as the lines say
  1   the directory could not be used; what was done stays done
  2   a line is not one of an export, or the last one is missing; or the arguments or the environment are wrong
  10  some records differ from those that are there, and were left as they are

Examples:
  $ npm run cli -- directory import directory.jsonl --dry-run
  $ CONTROL_REDIS_URL=redis://new.example:6379 npm run cli -- directory import directory.jsonl`

const CONFLICTS_SHOWN = 20

interface Asked {
  readonly replace?: boolean
  readonly dryRun?: boolean
  readonly json?: boolean
}

/** `directory export` and `directory import`. */
export function addDirectory(parent: Command, context: DirectoryCommandContext): void {
  const { withDirectory, write } = context
  const command = parent.command('directory').alias('control').description('the directory as a whole')
  command
    .command('export')
    .description('print all records as lines of JSON')
    .addHelpText('after', EXPORT_HELP)
    .action(() =>
      withDirectory(async directory => {
        for await (const line of exportDirectory(directory)) await write(`${JSON.stringify(line)}\n`)
      }),
    )
  command
    .command('import')
    .description('read records from lines of JSON')
    .argument('[file]', 'what to read; without it, stdin')
    .addOption(new Option('--replace', 'overwrite records that differ'))
    .option('--dry-run', 'look at everything and say what would be done')
    .option('--json', 'print the outcome as JSON')
    .addHelpText('after', IMPORT_HELP)
    .action((file: string | undefined, asked: Asked) => runImport(file, asked, context))
}

async function runImport(file: string | undefined, asked: Asked, context: DirectoryCommandContext): Promise<void> {
  const { print, printError, withDirectory, exit, now, stdin } = context
  let shown = 0
  const options = {
    replace: asked.replace ?? false,
    dryRun: asked.dryRun ?? false,
    now,
    onConflict: (message: string) => {
      if (shown++ < CONFLICTS_SHOWN) printError(printable(message))
    },
  }
  let opened: FileHandle | undefined
  try {
    opened = file === undefined ? undefined : await open(file)
  } catch (error) {
    printError(`the file cannot be read: ${describeError(error)}`)
    return exit(EXIT.usage)
  }
  await withDirectory(async directory => {
    try {
      const outcome = await importDirectory(directory, opened?.createReadStream() ?? stdin, options)
      if (shown > CONFLICTS_SHOWN) printError(`… and ${shown - CONFLICTS_SHOWN} more`)
      print(asked.json ? JSON.stringify(outcome) : describe(outcome, options.dryRun))
      if (outcome.conflicts > 0) exit(EXIT.conflict)
    } catch (error) {
      if (!(error instanceof LineError)) throw error
      printError(printable(error.message))
      exit(EXIT.usage)
    }
  }).finally(() => opened?.close())
}

function describe({ added, unchanged, replaced, conflicts }: ImportOutcome, isDryRun: boolean): string {
  const left = conflicts > 0 ? `, ${conflicts} left as they are` : ''
  return `${isDryRun ? 'would be: ' : ''}${added} added, ${unchanged} unchanged, ${replaced} replaced${left}`
}
