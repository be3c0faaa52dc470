import { readFileSync } from 'node:fs'
import { NO_SNIFF, type Reply, type Route } from '../../shared/http/route.ts'

/** The runbook of this version. */
const RUNBOOK = new URL('../../docs/runbook.md', import.meta.url)

/**
 * Returns the route of the runbook, to which the links of alerts lead (docs/runbook.md). It is part of the published documents, so
 * it needs no credential, and it is there without a console too. The text stays as it is, with links within the page.
 */
export function createRunbookRoute(): Route {
  const reply: Reply = {
    status: 200,
    headers: [
      ['content-type', 'text/html; charset=utf-8'],
      ['cache-control', 'no-cache'],
      [
        'content-security-policy',
        "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
      ],
      NO_SNIFF,
    ],
    body: Buffer.from(pageOf(readFileSync(RUNBOOK, 'utf8'))),
  }
  return { method: 'GET', path: '/console/runbook', bodyLimitBytes: 0, accept: () => reply }
}

function pageOf(markdown: string): string {
  const text = markdown
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll(/&lt;a id="(\w+)">&lt;\/a>\n+/g, '<a id="$1"></a>')
    .replaceAll(/\[([^\]]+)\]\((#\w+)\)/g, '<a href="$2">$1</a>')
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>Penstock: runbook</title>
<pre style="white-space: pre-wrap; max-width: 75em">${text}</pre>
</html>
`
}
