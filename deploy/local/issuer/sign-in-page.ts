import type { Header, Reply } from '../../../shared/http/route.ts'
import { NO_SNIFF, NO_STORE } from '../../../shared/http/route.ts'

const POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"

/** Returns a page of the issuer: a text of this program, and the command that prints another link. */
export function issuePage(status: number, text: string, headers: readonly Header[] = []): Reply {
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
<p><code>npm run console:link</code></p>
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
