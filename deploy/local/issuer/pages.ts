import { type Header, NO_SNIFF, NO_STORE, type Reply } from '../../../shared/http/route.ts'
import { commandFor } from '../config.ts'

/** Path of the issuer below the address of the service. */
export const ISSUER_PATH = '/local-issuer'

/** Returns a redirect that names no page as its referrer, because its own address has a code. */
export function redirect(location: string, headers: Reply['headers'] = []): Reply {
  return { status: 302, headers: [['location', location], NO_STORE, ['referrer-policy', 'no-referrer'], ...headers] }
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

/** Percent-encodes every value, so that no header of the redirect can have a line break of a client. */
export function withParameters(uri: string, parameters: Readonly<Record<string, string>>): string {
  return `${uri}?${new URLSearchParams(parameters)}`
}

const POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"

/** Returns the page that asks whether a program may sign in. */
export function askPage(host: string, request: string): Reply {
  const link = `<a href="${ISSUER_PATH}/allow?request=${request}">Allow</a>`
  const text = `A program of this machine (${host}) asks to sign in as you. Allow it only if you have just started it.`
  return issuePage(200, text, [], link)
}

const PRINT_LINK = `<code>${commandFor('console:link')}</code>`

/** Returns a page of the issuer: a text of this program, and the command that prints another link or what to do. */
export function issuePage(status: number, text: string, headers: readonly Header[] = [], action = PRINT_LINK): Reply {
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
<main>
<h1>Penstock</h1>
<p>${text.replaceAll('"', '&quot;')}</p>
<p>${action}</p>
</main>
</html>
`
  const own: Header[] = [
    ['content-type', 'text/html; charset=utf-8'],
    ['content-security-policy', POLICY],
    ['referrer-policy', 'no-referrer'],
    NO_SNIFF,
    NO_STORE,
  ]
  return { status, headers: [...own, ...headers], body }
}
