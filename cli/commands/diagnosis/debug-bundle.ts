import { writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { z } from 'zod'
import { makeBundle } from '../../bundle/make-bundle.ts'
import type { BundleCommandContext } from '../../command-context.ts'
import { EXIT, exitCodesHelp } from '../../exit-codes.ts'
import { counted, parsedBy } from '../../terminal.ts'

const HELP = `
Writes one .tar.gz for a report of a problem: versions, settings, INFO of each Redis, queues, watermarks, counts of the
directory, system tables of ClickHouse, and readiness and metrics of the processes that --admin names. It has no password, key,
token or secret, and neither requests nor values of rows: settings that may contain a secret are shown as set or not, addresses
without user and password. Read it before you pass it on. Sources that do not answer are named in missing.txt. It takes 15 seconds at most
for each store.

${exitCodesHelp({
  [EXIT.done]: 'the bundle is written; what is missing in it is a line on stderr',
  [EXIT.failed]: 'the bundle could not be written',
})}

Examples:
  $ npm run cli -- debug-bundle --admin http://127.0.0.1:4319 http://127.0.0.1:4302 http://127.0.0.1:4301
  $ npm run --silent cli -- debug-bundle --output - > problem.tar.gz`

const adminUrlSchema = z.url({ protocol: /^https?$/, error: 'It must be an address such as http://127.0.0.1:4302.' })

interface BundleOptions {
  readonly admin?: readonly string[]
  readonly output?: string
}

/** Adds `debug-bundle`. */
export function addDebugBundle(parent: Command, context: BundleCommandContext): void {
  const { print, printError, write, exit, directory, now } = context
  const toUrl = parsedBy(adminUrlSchema)
  parent
    .command('debug-bundle')
    .description('write what explains the state of the installation to one file, without secrets')
    .option('--admin <url...>', 'addresses of admin ports', (url: string, before: string[] = []) => [
      ...before,
      toUrl(url),
    ])
    .option('--output <file>', 'the file, or - for stdout; by default penstock-debug-<time>.tar.gz')
    .addHelpText('after', HELP)
    .action(async ({ admin = [], output }: BundleOptions) => {
      const { bytes, files, missing } = await makeBundle(context, admin)
      for (const line of missing) printError(`missing: ${line}`)
      if (output === '-') return write(bytes)
      const time = new Date(now()).toISOString().replaceAll(/[-:]|\.\d+/g, '')
      const file = resolve(directory, output ?? `penstock-debug-${time}.tar.gz`)
      try {
        await writeFile(file, bytes, { mode: 0o600 })
      } catch (error) {
        return exit(EXIT.failed, `${file} could not be written: ${error instanceof Error ? error.message : error}`)
      }
      print(`${file}: ${counted(files, 'file')}, ${counted(bytes.length, 'byte')}`)
    })
}
