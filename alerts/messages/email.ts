import { cut, escapeHtml } from './clean-text.ts'
import { footerOf, type Message, type MessageItem, moreOf } from './message.ts'
import { plainText } from './plain-text.ts'

/** Longer subjects are cut by readers of mail. A line of a header may have 998 (RFC 5322 section 2.1.1). */
const SUBJECT_MAX_CHARACTERS = 150

/** An e-mail before it is encoded. */
interface Email {
  /** One line without control characters. Characters beyond ASCII need RFC 2047. */
  readonly subject: string
  readonly text: string
  readonly html: string
}

/** Renders a message as the subject, the text and the HTML of an e-mail. The HTML loads nothing. */
export function email(message: Message): Email {
  return { subject: cut(message.title, SUBJECT_MAX_CHARACTERS), text: plainText(message), html: htmlOf(message) }
}

/** Only what clients of mail support alike: colours that both schemes share, and borders that follow the text. */
const STYLE = `
:root { color-scheme: light dark; }
body { margin: 0; padding: 24px 16px; font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 640px; margin: 0 auto; overflow-wrap: anywhere; }
h1 { font-size: 20px; line-height: 1.3; margin: 0 0 16px; padding-left: 12px; border-left: 4px solid #888; }
h1.critical, h1.error { border-color: #d33; } h1.warning { border-color: #c80; } h1.ended { border-color: #2a2; }
h2 { font-size: 16px; margin: 24px 0 4px; }
p, pre, blockquote { margin: 0 0 12px; }
pre { font: 13px/1.5 ui-monospace, monospace; white-space: pre-wrap; border: 1px solid #8886; padding: 8px 12px; }
blockquote { border-left: 3px solid #888; padding-left: 12px; }
table { margin: 0 0 12px -2px; }
td { padding: 0 16px 4px 0; vertical-align: top; }
td:first-child, footer { opacity: 0.75; white-space: nowrap; }
footer { white-space: normal; margin-top: 24px; font-size: 13px; }
`

function htmlOf(message: Message): string {
  const isDigest = message.items.length > 1
  const items = message.items.map(item => `${isDigest ? `<h2>${escapeHtml(item.title)}</h2>` : ''}${itemHtml(item)}`)
  const more = moreOf(message)
  return [
    '<!doctype html><html lang="en"><head><meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">',
    `<title>${escapeHtml(message.title)}</title><style>${STYLE}</style></head><body><main>`,
    `<h1 class="${message.resolved ? 'ended' : message.severity}">${escapeHtml(message.title)}</h1>`,
    ...items,
    more ? `<p>${more}</p>` : '',
    `<footer>${escapeHtml(footerOf(message))}</footer></main></body></html>`,
  ].join('\n')
}

function itemHtml({ changed, facts, frame, chain, comment, links }: MessageItem): string {
  const code = frame?.sourceLine === undefined ? '' : `<pre>${escapeHtml(frame.sourceLine)}</pre>`
  const rows = facts.map(({ name, value }) => `<tr><td>${escapeHtml(name)}</td><td>${escapeHtml(value)}</td></tr>`)
  return [
    `<p>${escapeHtml(changed)}</p>`,
    comment === undefined ? '' : `<blockquote>${escapeHtml(comment)}</blockquote>`,
    frame ? `<p>At <code>${escapeHtml(frame.place)}</code></p>${code}` : '',
    ...chain.map(cause => `<p>Caused by ${escapeHtml(cause)}</p>`),
    rows.length > 0 ? `<table role="presentation">${rows.join('')}</table>` : '',
    links.length > 0 ? `<p>${links.map(anchorOf).join(' · ')}</p>` : '',
  ].join('\n')
}

function anchorOf({ text, url }: MessageItem['links'][number]): string {
  return `<a href="${escapeHtml(url)}">${escapeHtml(text)}</a>`
}
