import { open } from 'node:fs/promises'
import { isWellFormedKey } from '../../../../schemas/records/key-form.ts'
import { BuildFailure } from './build-failure.ts'
import { describeError } from './describe.ts'
import { readRange } from './replace-file.ts'

/** Sources of the secret key. The first one that is set is used. */
export interface KeySources {
  /** Path given with `--key-file`. */
  readonly file?: string | undefined
  /** Value of `PENSTOCK_SECRET_KEY`. */
  readonly environment?: string | undefined
  /** Key of the installation that `npm start` runs here. It is set only if that installation is the target. */
  readonly local?: string | undefined
}

const KEY_FILE_BYTES = 1_024

/**
 * Returns a secret key with a valid format and checksum. Throws a BuildFailure whose message shows no part of the key.
 */
export async function readSecretKey({ file, environment, local }: KeySources): Promise<string> {
  const [text, source] =
    file !== undefined
      ? [await readKeyFile(file), file]
      : environment
        ? [environment.trim(), 'PENSTOCK_SECRET_KEY']
        : [local, 'credentials.json']
  if (text === undefined) {
    const ways = 'set PENSTOCK_SECRET_KEY, or name a file that contains the key with --key-file'
    throw new BuildFailure('api_key_unreadable', `there is no key: ${ways}`)
  }
  if (text !== '' && !text.startsWith('sk_')) {
    const is = text.startsWith('pk_') ? 'a public key' : text.startsWith('wk_') ? 'a workspace key' : 'something else'
    throw new BuildFailure(
      'api_key_wrong_prefix',
      `${source} contains ${is}: a build needs a secret key of its surface (sk_…)`,
    )
  }
  if (!isWellFormedKey('secret', text)) {
    const problem = text === '' ? 'is empty' : 'contains an incomplete key: its length or its checksum is wrong'
    throw new BuildFailure('api_key_unreadable', `${source} ${problem}`)
  }
  return text
}

async function readKeyFile(path: string): Promise<string> {
  try {
    const file = await open(path)
    try {
      return (await readRange(file, 0, KEY_FILE_BYTES)).toString('utf8').trim()
    } finally {
      await file.close()
    }
  } catch (error) {
    throw new BuildFailure('api_key_unreadable', `the key file cannot be read: ${describeError(error)}`)
  }
}
