import type { RequestHead } from './route.ts'

/** Headers of a key in the forms of drains and of other services. */
const OTHER_HEADERS = ['api-key', 'x-api-key'] as const

/**
 * Returns the public key of a request, well-formed or not (docs/api/credentials.md#credentials). The header of this service wins
 * over the query. Everywhere else a value counts only if it begins as a public key does, because it may be meant for a proxy.
 */
export function presentedPublicKey(head: Pick<RequestHead, 'header' | 'query'>): string | undefined {
  return head.header('x-service-public-key') || head.query('public_key') || presentedElsewhere(head)
}

function presentedElsewhere(head: Pick<RequestHead, 'header'>): string | undefined {
  const authorization = head.header('authorization')
  const authorized = authorization === undefined ? undefined : publicKeyOf(authorization)
  if (authorized !== undefined) return authorized
  for (const name of OTHER_HEADERS) {
    const value = head.header(name)
    if (value !== undefined && beginsAsPublicKey(value)) return value
  }
  return undefined
}

/** Longest value of `Authorization` that is looked at. A key as user and password of Basic takes 120 characters. */
const MAX_AUTHORIZATION = 512

/**
 * Returns the public key in a value of `Authorization`: a Bearer token, or user or password of Basic. Some SDKs do not decode
 * headers that an environment variable sets, so that a blank is `%20`.
 */
export function publicKeyOf(authorization: string): string | undefined {
  const [, scheme = '', value = ''] =
    /^(bearer|basic)(?: |%20)+(\S+) *$/i.exec(authorization.slice(0, MAX_AUTHORIZATION)) ?? []
  const given =
    scheme.toLowerCase() === 'basic' ? Buffer.from(value, 'base64').toString('latin1').split(':', 2) : [value]
  return given.find(beginsAsPublicKey)
}

function beginsAsPublicKey(text: string): boolean {
  return text.startsWith('pk_')
}
