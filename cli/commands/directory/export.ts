import type { Command } from 'commander'
import { exportDirectory } from '../../../shared/directory/export/export-directory.ts'
import type { DirectoryCommandContext } from '../../command-context.ts'
import { EXIT, exitCodesHelp } from '../../exit-codes.ts'

const HELP = `
Prints users, workspaces, members, surfaces, keys, releases with their current manifests, and which source maps are
stored, each as one line of JSON: { "kind": …, "record": { "version": 1, … } }. The last line has the kind "end". A
key is printed as digest and salt, never as text. It stays valid where the lines are imported, and a repeated request
that created it gets the same answer. The secret that encrypts the ids of receipts is printed in plain text: protect
the output. Objects (manifests, maps) are in the object store, which is moved separately. KEY_PEPPER moves with the
settings. Queued jobs and uploaded parts of source maps are in the Redis of the queues (REDIS_URL) and are not
printed.

Each record is printed as it was when it was read. A concurrent change may or may not be in the output. To move an
installation, first stop edge and API and let the workers empty the queues. A backup that was taken while they were
running can be imported, too.

${exitCodesHelp({
  [EXIT.done]: 'everything was printed',
  [EXIT.failed]: 'the directory is unavailable or contains an invalid record; the output is incomplete',
})}

Example:
  $ npm run --silent cli -- directory export > directory.jsonl`

/** Adds `directory export`. */
export function addDirectoryExport(parent: Command, { withDirectory, write }: DirectoryCommandContext): void {
  parent
    .command('export')
    .description('print all records as lines of JSON')
    .addHelpText('after', HELP)
    .action(() =>
      withDirectory(async directory => {
        for await (const line of exportDirectory(directory)) await write(`${JSON.stringify(line)}\n`)
      }),
    )
}
