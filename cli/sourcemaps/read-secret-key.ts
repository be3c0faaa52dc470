import { open } from 'node:fs/promises'
import { isWellFormedKey } from '../../shared/ids/credentials.ts'
import { describeError } from '../../shared/runtime/errors.ts'
import { BuildStop } from './build-stop.ts'
import { readRange } from './replace-file.ts'

/** Where a key may come from, the first that is there. */
export interface KeySources {
  /** `--key-file`. */
  readonly file?: string | undefined
  /** `PENSTOCK_SECRET_KEY`. */
  readonly environment?: string | undefined
  /** Of the installation that `npm start` runs here, and only for its own address. */
  readonly local?: string | undefined
}

const KEY_FILE_BYTES = 1_024

/** A secret key whose form and checksum are right. Throws a BuildStop; no message shows anything of the key. */
export async function readSecretKey({ file, environment, local }: KeySources): Promise<string> {
  const [text, source] =
    file !== undefined
      ? [await readKeyFile(file), file]
      : environment
        ? [environment.trim(), 'PENSTOCK_SECRET_KEY']
        : [local, 'credentials.json']
  if (text === undefined) {
    const ways = 'set PENSTOCK_SECRET_KEY, or name a file that holds the key with --key-file'
    throw new BuildStop('api_key_unreadable', `there is no key: ${ways}`)
  }
  if (text !== '' && !text.startsWith('sk_')) {
    const is = text.startsWith('pk_') ? 'a public key' : text.startsWith('wk_') ? 'a workspace key' : 'no secret key'
    throw new BuildStop(
      'api_key_wrong_prefix',
      `${source} holds ${is}: a build needs the secret key of its surface, sk_…`,
    )
  }
  if (!isWellFormedKey('secret', text)) {
    const fault = text === '' ? 'is empty' : 'holds a key that is not whole: its length or its checksum is wrong'
    throw new BuildStop('api_key_unreadable', `${source} ${fault}`)
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
    throw new BuildStop('api_key_unreadable', `the key file cannot be read: ${describeError(error)}`)
  }
}
