import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { readSecretFiles } from '../../../shared/runtime/secret-files.ts'
import { commandFor, parseLocalConfig } from '../config.ts'
import { createLink } from './links.ts'
import { ISSUER_PATH } from './pages.ts'

/** Prints a link that signs one browser in to the console of the installation that runs in LOCAL_DIR. */
const { LOCAL_DIR } = parseLocalConfig(readSecretFiles(process.env).env)
try {
  const { baseUrl } = JSON.parse(await readFile(join(LOCAL_DIR, 'credentials.json'), 'utf8')) as { baseUrl: string }
  process.stdout.write(`${baseUrl}${ISSUER_PATH}/open?code=${await createLink(LOCAL_DIR)}\n`)
} catch (error) {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  process.stderr.write(`penstock: nothing runs with its data in ${LOCAL_DIR}: run "${commandFor('start')}" first\n`)
  process.exitCode = 1
}
