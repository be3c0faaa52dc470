import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { type Header, NO_SNIFF, NO_STORE, type Reply } from '../../../shared/http/route.ts'
import { commandFor } from '../config.ts'

/** Path of the issuer below the address of the service. */
export const ISSUER_PATH = '/local-issuer'

/** Returns a redirect that names no page as its referrer, because its own address has a code. */
function redirect(location: string): Reply {
  return { status: 302, headers: [['location', location], NO_STORE, ['referrer-policy', 'no-referrer']] }
}

/**
 * Returns the reply to a sign-in of another address. A browser at `localhost` continues where the console is, without a code:
 * another user of the machine may listen at ::1, to which that name leads too.
 */
export function otherAddressReply(redirectUris: readonly string[], redirectUri: string): Reply {
  const meant = redirectUris.find(uri => uri.replace('//127.0.0.1:', '//localhost:') === redirectUri)
  if (meant !== undefined) return redirect(meant)
  return issuePage(400, `The console of this installation is at ${redirectUris[0]}. To sign in there, print a link:`)
}

/** Adds parameters to an address, each of them percent-encoded. */
export function withParameters(uri: string, parameters: Readonly<Record<string, string>>): string {
  return `${uri}?${new URLSearchParams(parameters)}`
}

const SCRIPT = readFileSync(new URL('page-script.js', import.meta.url), 'utf8')
const SCRIPT_DIGEST = createHash('sha256').update(SCRIPT).digest('base64')
const POLICY = [
  ...["default-src 'none'", "style-src 'unsafe-inline'", `script-src 'sha256-${SCRIPT_DIGEST}'`, "connect-src 'self'"],
  ...["form-action 'none'", "base-uri 'none'", "frame-ancestors 'none'"],
].join('; ')

/** A step that a page takes with the session of the browser. */
type PageStep = 'open' | 'authorize' | 'end'

/** Returns the page that takes a step. `text` is shown until it has an answer. */
export function stepPage(step: PageStep, text = 'Signing in …'): Reply {
  return page(200, text, step)
}

/** Returns a page of the issuer: a text of this program, and the command that prints another link. */
function issuePage(status: number, text: string): Reply {
  return page(status, text, undefined)
}

function page(status: number, text: string, step: PageStep | undefined): Reply {
  const body = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sign in to Penstock</title>
<style>
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 34rem; margin: 20vh auto 0; padding: 0 1.5rem }
h1 { font-size: 1.25rem }
code { font: 14px/1.5 ui-monospace, monospace; background: color-mix(in srgb, currentColor 10%, transparent); padding: .25em .5em; border-radius: 4px }
</style>
<main${step === undefined ? '' : ` data-step="${step}"`}>
<h1>Penstock</h1>
<p>${text.replaceAll('"', '&quot;')}</p>
<button id="allow" hidden>Allow</button>
<p id="print"${step === undefined ? '' : ' hidden'}><code>${commandFor('console:link')}</code></p>
</main>
<script>${SCRIPT}</script>
</html>
`
  const headers: Header[] = [
    ['content-type', 'text/html; charset=utf-8'],
    ['content-security-policy', POLICY],
    ['referrer-policy', 'no-referrer'],
    NO_SNIFF,
    NO_STORE,
  ]
  return { status, headers, body }
}
