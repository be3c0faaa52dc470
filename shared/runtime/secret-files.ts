import { readFileSync } from 'node:fs'

/**
 * Settings that are, or may contain, a secret. Each may be given as a file instead: `KEY_PEPPER_FILE` names that of
 * `KEY_PEPPER`.
 */
export const SECRET_SETTINGS = [
  'REDIS_URL',
  'DIRECTORY_REDIS_URL',
  'CLICKHOUSE_URL',
  'CLICKHOUSE_PASSWORD',
  'AWS_ACCESS_KEY_ID',
  'AWS_SECRET_ACCESS_KEY',
  'DIRECTORY_BACKUP_KEY',
  'KEY_PEPPER',
  'DELIVERY_KEY',
  'DELIVERY_KEY_PREVIOUS',
  'SMTP_URL',
  'AUTH_PUBLIC_KEY',
] as const

/** The variables of an environment. */
export type Environment = Readonly<Record<string, string | undefined>>

/** An environment whose files have been read. */
interface ReadEnvironment {
  readonly env: Environment
  /** Faults of the files, one line each. Their settings are absent from `env`. */
  readonly faults: readonly string[]
}

/** Largest file of a secret. A larger one is a mistake, such as a device. */
const SECRET_BYTES_MAX = 64 * 1024

/**
 * Replaces each `NAME_FILE` by `NAME` with the contents of the file, without the line breaks at its end, which editors and
 * `kubectl create secret` leave there. An empty variable counts as absent. Faults name files, but never contents.
 */
export function readSecretFiles(env: Environment, names: readonly string[] = SECRET_SETTINGS): ReadEnvironment {
  const read: Record<string, string | undefined> = { ...env }
  const faults: string[] = []
  for (const name of names) {
    const fileName = `${name}_FILE`
    const path = env[fileName]
    if (!path) continue
    delete read[fileName]
    if (env[name]) {
      delete read[name]
      faults.push(`${name} is set twice, here and by ${fileName}: remove one`)
      continue
    }
    const result = readSecret(path)
    if ('fault' in result) faults.push(`${fileName} names ${path}, which ${result.fault}`)
    else read[name] = result.text
  }
  return { env: read, faults }
}

function readSecret(path: string): { readonly text: string } | { readonly fault: string } {
  try {
    const bytes = readFileSync(path)
    if (bytes.length > SECRET_BYTES_MAX) return { fault: `has more than ${SECRET_BYTES_MAX} bytes` }
    const text = bytes.toString('utf8').replace(/[\r\n]+$/, '')
    return text === '' ? { fault: 'is empty' } : { text }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'an error'
    return { fault: `cannot be read: ${code}` }
  }
}
