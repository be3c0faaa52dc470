import { SECRET_SETTINGS } from '../../shared/runtime/secret-files.ts'

/** Shorter texts occur by chance. */
const LEAST_CHARACTERS = 4
const REMOVED = '[removed]'
/** Names of users that are words of their own. */
const KNOWN_USERS = new Set(['default', 'penstock'])
/** User and password, or a password in the query, of an address. */
const CREDENTIALS = /\/\/(?:([^:/?#@]*)(?::([^/?#]*))?@)|[?&]\w*password=([^&#]*)/gi

/**
 * Returns a function that removes the secrets of an environment, and those of further addresses, from a text. Whatever a store
 * has written into its messages, none of them leaves this process.
 */
export function redactorOf(
  env: Readonly<Record<string, string | undefined>>,
  addresses: readonly string[],
): (text: string) => string {
  const values = [...Object.values(env).filter(value => value !== undefined), ...addresses]
  const secrets = new Set<string>()
  const add = (text: string | undefined) => {
    if (text === undefined || KNOWN_USERS.has(text)) return
    for (const form of [text, decoded(text)]) {
      secrets.add(form)
      // As JSON and URLs write it.
      secrets.add(JSON.stringify(form).slice(1, -1))
      secrets.add(encodeURIComponent(form))
    }
  }
  for (const name of SECRET_SETTINGS) add(env[name])
  for (const value of values) {
    for (const [, user, password, inQuery] of value.matchAll(CREDENTIALS))
      for (const part of [user, password, inQuery]) add(part)
  }
  // The longest first, because one may contain another.
  const sorted = [...secrets].filter(({ length }) => length >= LEAST_CHARACTERS).sort((a, b) => b.length - a.length)
  return text => sorted.reduce((rest, secret) => rest.replaceAll(secret, REMOVED), text)
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
