import type { Command } from 'commander'
import { DAY_MS } from '../../schemas/units.ts'
import { rotateReceiptSecret } from '../../shared/directory/receipt-secret.ts'
import type { DirectoryCommandContext } from '../command-context.ts'
import { EXIT, exitCodesHelp } from '../exit-codes.ts'
import { counted } from '../terminal.ts'

const HELP = `
Makes a new secret, for after the old one became known. It seals the ids of receipts, hashes what scrubbing hashes, and
hashes the subjects of erasures. Edges take the new one within a minute, workers when they are started again. Receipts of
before stay readable for RETENTION_DAYS. Values that scrubbing hashes, and the subjectHash of an erasure, are others from
then on. Backups that were made before have the old secret: make a new one afterwards.

${exitCodesHelp({ [EXIT.notFound]: 'there is no secret yet: the first edge makes it' })}

Example:
  $ npm run cli -- directory rotate-receipt-secret`

/** Adds `directory rotate-receipt-secret`. */
export function addReceiptSecretRotation(
  parent: Command,
  { withDirectory, print, exit, now }: DirectoryCommandContext,
): void {
  parent
    .command('rotate-receipt-secret')
    .description('replace the secret that seals receipts, which stay readable')
    .addHelpText('after', HELP)
    .action(() =>
      withDirectory(async ({ redis, retentionDays }) => {
        // Receipts of the day in which the secret is replaced expire with that day.
        const earlier = await rotateReceiptSecret(redis, { now: now(), keptMs: (retentionDays + 1) * DAY_MS })
        if (earlier === undefined) return exit(EXIT.notFound, 'there is no secret of receipts yet')
        print(`the secret of receipts is replaced: receipts of ${counted(earlier, 'earlier secret')} stay readable`)
      }),
    )
}
