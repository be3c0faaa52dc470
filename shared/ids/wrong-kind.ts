import type { Credential } from '../../schemas/http/credentials.ts'

const PUBLIC_KEY = 'a public key of a surface (pk_…)'
const USER_TOKEN = 'the token of a signed-in user'

/** How messages name the kinds of credentials. */
const NAMES: Readonly<Record<Credential, string>> = {
  publicKeyHeader: PUBLIC_KEY,
  publicKeyQuery: PUBLIC_KEY,
  secretKey: 'a secret key of a surface (sk_…)',
  workspaceKey: 'a workspace API key (wk_…)',
  sessionToken: USER_TOKEN,
  workloadIdentity: 'the token of a workload',
}

/** Kinds of credentials by how their text begins. A token is a JWT, whose kind only its issuer shows. */
const BEGINNINGS: readonly (readonly [beginning: RegExp, kinds: readonly Credential[], name: string])[] = [
  [/^pk_/, ['publicKeyHeader', 'publicKeyQuery'], PUBLIC_KEY],
  [/^sk_/, ['secretKey'], NAMES.secretKey],
  [/^wk_/, ['workspaceKey'], NAMES.workspaceKey],
  [/^eyJ[\w-]*\.[\w-]+\.[\w-]*$/, ['sessionToken', 'workloadIdentity'], 'a token'],
]

/** Returns which credentials an operation takes, as a part of a message. */
export function takenKinds(credentials: readonly Credential[]): string {
  const names = [...new Set(credentials.map(kind => NAMES[kind]))]
  const last = names.pop()
  return `this operation takes ${names.length === 0 ? '' : `${names.join(', ')} or `}${last}`
}

/**
 * Returns the message for a credential of a kind that the operation does not take, or undefined for any other text. The
 * message has nothing of the credential but its kind.
 */
export function wrongKind(credentials: readonly Credential[], sent: string): string | undefined {
  const [, kinds, name] = BEGINNINGS.find(([beginning]) => beginning.test(sent)) ?? []
  if (kinds === undefined || kinds.some(kind => credentials.includes(kind))) return undefined
  return `${takenKinds(credentials)}; ${name} was sent`
}

/** Longest value of `Authorization` whose kind is looked at: a token of 8,192 characters, and its scheme. */
const MAX_AUTHORIZATION = 8_208

/** Does as `wrongKind` does, for the Bearer token of a header `Authorization`. */
export function wrongBearer(credentials: readonly Credential[], authorization: string): string | undefined {
  const sent = /^Bearer +(\S+) *$/i.exec(authorization.slice(0, MAX_AUTHORIZATION))?.[1]
  return sent === undefined ? undefined : wrongKind(credentials, sent)
}
