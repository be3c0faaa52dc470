import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { namesTag } from '../../shared/http/etag.ts'
import {
  type Header,
  NO_SNIFF,
  problemReply,
  type Reply,
  type RequestHead,
  type Route,
} from '../../shared/http/route.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { acceptsGzip } from '../http/packed-json.ts'
import { BUILT_CONSOLE, type BuiltConsole, type BuiltFile, readBuiltConsole } from './built-files.ts'

/** How the console signs its users in, and the address that it shows to send telemetry to. */
interface ConsoleSettings {
  /** The OpenID provider whose access tokens the API accepts. Unset: the console is not served. */
  readonly CONSOLE_ISSUER?: string | undefined
  readonly CONSOLE_CLIENT_ID: string
  readonly CONSOLE_SCOPE: string
  readonly CONSOLE_AUDIENCE?: string | undefined
  /** The one address of edge and API. Unset: that of the console. */
  readonly PUBLIC_URL?: string | undefined
}

/**
 * Returns the routes of the console (docs/operate/processes.md#console): its document under every path of `/console/`, to which
 * the address without a path leads, the document in which recordings are played, and their assets, whose names change with their
 * content. Every file is read here once, so that no path of a request reaches the file system.
 */
export function createConsoleRoutes(
  settings: ConsoleSettings,
  logger: Logger,
  directory = BUILT_CONSOLE,
): readonly Route[] {
  const { CONSOLE_ISSUER: issuer } = settings
  if (issuer === undefined) return []
  const built = readBuiltConsole(directory)
  if (built === undefined) {
    logger.warn({ directory }, 'the console is not built: run "npm run build:console"')
    return []
  }
  return [
    get('/', () => ({ status: 302, headers: [['location', '/console/']] })),
    get('/console', () => ({ status: 308, headers: [['location', '/console/']] })),
    get('/console/*', documentReply(built, settings, issuer)),
    get('/console/player', playerReply(built)),
    ...built.assets.map(asset => get(`/console/assets/${asset.name}`, assetReply(asset))),
    get('/console/assets/*', () => problemReply({ code: 'NOT_FOUND', message: 'the console has no such file' })),
  ]
}

function get(path: string, accept: (head: RequestHead) => Reply): Route {
  return { method: 'GET', path, bodyLimitBytes: 0, accept }
}

const VARY: Header = ['vary', 'accept-encoding']

/** Returns the document, which its browser asks for again each time, so that a new version is used at once. */
function documentReply(built: BuiltConsole, settings: ConsoleSettings, issuer: string): (head: RequestHead) => Reply {
  const { CONSOLE_CLIENT_ID: clientId, CONSOLE_SCOPE: scope, CONSOLE_AUDIENCE: audience } = settings
  const signIn = JSON.stringify({ issuer, clientId, scope, audience })
  const values = { SIGN_IN: signIn, PUBLIC_URL: settings.PUBLIC_URL ?? '' }
  const plain = Buffer.from(
    built.document.replace(/%(SIGN_IN|PUBLIC_URL)%/g, (_, name: keyof typeof values) => escapeAttribute(values[name])),
  )
  return htmlReply(plain, securityHeaders(new URL(issuer).origin))
}

/** Returns the document in which recordings are played, with a policy of its own. */
function playerReply({ player }: BuiltConsole): (head: RequestHead) => Reply {
  return htmlReply(Buffer.from(player), PLAYER_HEADERS)
}

function htmlReply(plain: Buffer, security: readonly Header[]): (head: RequestHead) => Reply {
  const gzip = gzipSync(plain, { level: 9 })
  const etag = `"${createHash('sha256').update(plain).digest('base64url')}"`
  const headers: readonly Header[] = [
    ['content-type', 'text/html; charset=utf-8'],
    ['cache-control', 'no-cache'],
    ['etag', etag],
    VARY,
    ...security,
  ]
  return head => {
    if (namesTag(head.header('if-none-match'), etag)) return { status: 304, headers }
    return packedReply(head, headers, { plain, gzip })
  }
}

/** Script of the stage. Its document has an opaque origin, which is another one than that of this file. */
const STAGE_SCRIPT = /^stage-/

function assetReply({ name, contentType, plain, gzip }: BuiltFile): (head: RequestHead) => Reply {
  const headers: readonly Header[] = [
    ['content-type', contentType],
    ['cache-control', 'public, max-age=31536000, immutable'],
    VARY,
    NO_SNIFF,
    ['cross-origin-resource-policy', STAGE_SCRIPT.test(name) ? 'cross-origin' : 'same-origin'],
  ]
  return head => packedReply(head, headers, { plain, gzip })
}

function packedReply(
  head: RequestHead,
  headers: readonly Header[],
  { plain, gzip }: Pick<BuiltFile, 'plain' | 'gzip'>,
): Reply {
  if (!acceptsGzip(head.header('accept-encoding'))) return { status: 200, headers, body: plain }
  return { status: 200, headers: [...headers, ['content-encoding', 'gzip']], body: gzip }
}

/**
 * Returns the headers that bound what the document can do: no script, style or request but those of its own origin, besides
 * requests to the issuer. Its texts come from unknown clients.
 */
function securityHeaders(issuerOrigin: string): Header[] {
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    `connect-src 'self' ${issuerOrigin}`,
    "frame-src 'self'",
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ]
  return [
    ['content-security-policy', policy.join('; ')],
    NO_SNIFF,
    ['referrer-policy', 'no-referrer'],
    ['cross-origin-opener-policy', 'same-origin'],
    ['cross-origin-resource-policy', 'same-origin'],
    ['permissions-policy', 'camera=(), microphone=(), geolocation=(), payment=(), usb=()'],
  ]
}

/**
 * Headers of the document in which recordings are played. A recording may come from anyone who knows a public key: no script but
 * the player's own runs, and nothing is requested from anywhere, by the document and by the frames in it, which inherit the policy.
 * Recorded pages need their inline styles, and what they embed as `data:`. Names of hosts in links are not looked up.
 */
const PLAYER_HEADERS: readonly Header[] = [
  [
    'content-security-policy',
    [
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'unsafe-inline'",
      'img-src data: blob:',
      'font-src data:',
      'media-src data: blob:',
      'frame-src data:',
      "form-action 'none'",
      "base-uri 'none'",
      "frame-ancestors 'self'",
      'sandbox allow-scripts allow-same-origin',
    ].join('; '),
  ],
  NO_SNIFF,
  ['x-dns-prefetch-control', 'off'],
  ['referrer-policy', 'no-referrer'],
  ['cross-origin-opener-policy', 'same-origin'],
  ['cross-origin-resource-policy', 'same-origin'],
  ['permissions-policy', 'camera=(), microphone=(), geolocation=(), payment=(), usb=(), autoplay=(), fullscreen=()'],
]

function escapeAttribute(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;')
}
