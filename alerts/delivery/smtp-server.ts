/** The server that takes mail for all receivers, as an operator sets it. */
export interface SmtpServer {
  readonly host: string
  readonly port: number
  /** `always`: TLS from the first byte. `starttls`: a server that does not offer it is refused. `off`: plain text. */
  readonly tls: 'always' | 'starttls' | 'off'
  readonly user?: { readonly name: string; readonly password: string }
}

const TLS_PORT = 465
const SUBMISSION_PORT = 587

/**
 * Reads `smtps://user:password@host:465`, or `smtp://user:password@host:587`, which must offer STARTTLS. With `?tls=off`,
 * `smtp://` is plain text, without user and password. Returns undefined for every other text.
 */
export function parseSmtpUrl(text: string): SmtpServer | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const {
    protocol = '',
    hostname = '',
    port = '',
    username = '',
    password = '',
    search = '',
    pathname = '',
  } = url ?? {}
  const tls = TLS[`${protocol}${search}`]
  const isPlain = ['', '/'].includes(pathname) && url?.hash === ''
  if (tls === undefined || hostname === '' || !isPlain || port === '0') return undefined
  if (username === '' && password === '') return { host: bare(hostname), port: Number(port) || defaultPort(tls), tls }
  const [name, secret] = [decoded(username), decoded(password)]
  // A password would be readable on its way.
  if (tls === 'off' || !name || !secret) return undefined
  return { host: bare(hostname), port: Number(port) || defaultPort(tls), tls, user: { name, password: secret } }
}

const TLS: Readonly<Record<string, SmtpServer['tls']>> = {
  'smtps:': 'always',
  'smtp:': 'starttls',
  'smtp:?tls=off': 'off',
}

const bare = (host: string) => host.replace(/^\[(.*)\]$/, '$1')
const defaultPort = (tls: SmtpServer['tls']) => (tls === 'always' ? TLS_PORT : SUBMISSION_PORT)

function decoded(part: string): string | undefined {
  try {
    return decodeURIComponent(part)
  } catch {
    return undefined
  }
}
