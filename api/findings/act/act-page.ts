import { createHash } from 'node:crypto'
import { escapeHtml, oneLine } from '../../../alerts/messages/clean-text.ts'
import type { Problem } from '../../../schemas/http/problems.ts'
import { type Header, NO_SNIFF, NO_STORE, problemReply, type Reply } from '../../../shared/http/route.ts'

/** Everything that the holder of a message can do with a finding, by the value of its button. */
export const ACTS = {
  acknowledge: {
    button: 'Acknowledge',
    effect: 'Others see that somebody looks at it. Its status stays.',
    done: 'The finding is acknowledged.',
    repeated: 'The finding was acknowledged already.',
  },
  resolve: {
    button: 'Resolve',
    effect: 'It is fixed. If it occurs again in a later version, it is back.',
    done: 'The finding is resolved.',
    repeated: 'The finding was resolved already.',
  },
  ignore: {
    button: 'Ignore for a week',
    effect: 'It is open again afterwards.',
    done: 'The finding is ignored for a week.',
    repeated: 'The finding was ignored already.',
  },
} as const
/** Something that the holder of a message can do with a finding. */
export type Act = keyof typeof ACTS

/** The texts of a finding that pages show, as clients have sent them. */
interface ShownFinding {
  readonly id: string
  readonly type: string
  readonly message: string
  readonly serviceName: string
  readonly status: string
}

const STYLE = `
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0; padding: 12vh 24px 24px }
main { max-width: 34rem; margin: 0 auto; overflow-wrap: anywhere }
h1 { font-size: 1.25rem; line-height: 1.3; margin: 0 0 .5rem }
p { margin: 0 0 1rem }
.quiet { opacity: .75 }
.act { display: grid; grid-template-columns: 11rem 1fr; gap: 1rem; align-items: center; margin: 0 0 1rem }
.act p { margin: 0 }
button { font: inherit; padding: .5rem 1rem; cursor: pointer }
@media (max-width: 30rem) { .act { grid-template-columns: 1fr; gap: .25rem } }
`

/**
 * Headers of the pages. They have no script, load nothing, are in no frame, and send no address on: that of the page has the token.
 * A cache keeps none, and a search engine lists none.
 */
const HEADERS: readonly Header[] = [
  ['content-type', 'text/html; charset=utf-8'],
  [
    'content-security-policy',
    [
      "default-src 'none'",
      `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
      "form-action 'self'",
      "base-uri 'none'",
      "frame-ancestors 'none'",
    ].join('; '),
  ],
  ['referrer-policy', 'no-referrer'],
  ['x-robots-tag', 'noindex, nofollow'],
  ['cross-origin-opener-policy', 'same-origin'],
  ['cross-origin-resource-policy', 'same-origin'],
  NO_SNIFF,
  NO_STORE,
]

const TITLE_CHARACTERS = 300
const NAME_CHARACTERS = 100

/** Returns the page that asks what to do. Nothing is done before one of its buttons is pressed. */
export function askPage(finding: ShownFinding, receiver: string, token: string): Reply {
  const { serviceName, status } = finding
  const service = oneLine(serviceName, NAME_CHARACTERS)
  const from = oneLine(receiver, NAME_CHARACTERS)
  const buttons = Object.entries(ACTS).map(
    ([act, { button, effect }]) =>
      `<div class="act"><button name="act" value="${act}" aria-describedby="${act}">${button}</button><p id="${act}">${effect}</p></div>`,
  )
  return page(200, titleOf(finding), [
    `<p class="quiet">${service && `In ${escapeHtml(service)} · `}${escapeHtml(status)} · from a message to ${escapeHtml(from)}</p>`,
    `<form method="post" action="act"><input type="hidden" name="token" value="${escapeHtml(token)}">`,
    ...buttons,
    '</form>',
    linkTo(finding),
  ])
}

/** Returns the page that states what was done. */
export function donePage(finding: ShownFinding, act: Act, isRepeated: boolean): Reply {
  const { done, repeated } = ACTS[act]
  return page(200, isRepeated ? repeated : done, [`<p>${escapeHtml(titleOf(finding))}</p>`, linkTo(finding)])
}

/** Returns the page of a link that is not good, for whatever reason. */
export function refusedPage(): Reply {
  return page(404, 'This link does not work', [
    '<p>It is older than seven days, or incomplete, or its receiver was removed or changed. Open the finding in the console.</p>',
  ])
}

/** Returns the page of a finding that is not there any more. */
export function gonePage(): Reply {
  return page(404, 'The finding is not kept any more', ['<p>All of its occurrences have expired.</p>'])
}

/** Returns the page of a problem. */
export function problemPage(problem: Problem): Reply {
  return asPage(problemReply(problem))
}

/** Returns a reply as a page, if it is a problem in JSON. */
export function asPage(reply: Reply): Reply {
  const { status, headers = [], body } = reply
  if (!headers.some(([name, value]) => name === 'content-type' && value === 'application/json')) return reply
  const { message } = JSON.parse(String(body)) as { readonly message: string }
  const retry = headers.filter(([name]) => name === 'retry-after')
  return page(
    status,
    'Nothing was done',
    [`<p>${escapeHtml(`${message.charAt(0).toUpperCase()}${message.slice(1)}.`)}</p>`],
    retry,
  )
}

function titleOf({ type, message }: ShownFinding): string {
  const error = oneLine([type, message].filter(text => text !== '').join(': '), TITLE_CHARACTERS)
  return error || 'A finding without a message'
}

function linkTo({ id }: ShownFinding): string {
  return `<p><a href="findings/${escapeHtml(id)}">Open the finding</a></p>`
}

/** Returns a page. `title` is escaped here, and `lines` are HTML. */
function page(status: number, title: string, lines: readonly string[], headers: readonly Header[] = []): Reply {
  const body = [
    '<!doctype html>',
    '<html lang="en">',
    '<head><meta charset="utf-8"><meta name="viewport" content="width=device-width">',
    '<meta name="robots" content="noindex, nofollow"><title>Penstock</title>',
    `<style>${STYLE}</style></head>`,
    `<body><main><h1>${escapeHtml(title)}</h1>`,
    ...lines,
    '</main></body></html>',
  ].join('\n')
  return { status, headers: [...HEADERS, ...headers], body }
}
