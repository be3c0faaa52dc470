import { footerOf, type Message, type MessageItem, moreOf } from './message.ts'

/** Renders a message as CommonMark (spec.commonmark.org/0.31.2). */
export function markdown(message: Message): string {
  const isDigest = message.items.length > 1
  const items = message.items.map(item => (isDigest ? [`**${escapeMarkdown(item.title)}**`] : []).concat(linesOf(item)))
  const more = moreOf(message)
  const title = `### ${escapeMarkdown(message.title)}`
  return [[title], ...items, ...(more ? [[more]] : []), [escapeMarkdown(footerOf(message))]]
    .map(lines => lines.join('  \n'))
    .join('\n\n')
}

function linesOf({ changed, facts, frame, chain, comment, links }: MessageItem): string[] {
  const shownFacts = facts.map(({ name, value }) => `${name}: **${escapeMarkdown(value)}**`)
  return [
    escapeMarkdown(changed),
    ...(comment === undefined ? [] : [`Comment: ${escapeMarkdown(comment)}`]),
    ...(frame ? [`At ${codeSpan(frame.place)}`] : []),
    ...(frame?.sourceLine === undefined ? [] : [`Source: ${codeSpan(frame.sourceLine)}`]),
    ...chain.map(cause => `Caused by ${codeSpan(cause)}`),
    ...(shownFacts.length > 0 ? [shownFacts.join(' · ')] : []),
    ...(links.length > 0 ? [links.map(({ text, url }) => `[${text}](${url})`).join(' · ')] : []),
  ]
}

/**
 * Escapes all punctuation of ASCII (section 2.4), so that a line has no markup, no link and no HTML. An `@` gets a space of no
 * width after it: chats look for mentions in the text that remains.
 */
function escapeMarkdown(text: string): string {
  return text.replaceAll(/[!-/:-@[-`{-~]/g, mark => (mark === '@' ? '@\u200b' : `\\${mark}`))
}

/** Returns a code span (section 6.1), whose fence is longer than any run of backticks in it. */
function codeSpan(text: string): string {
  const runs = text.match(/`+/g) ?? []
  const fence = '`'.repeat(Math.max(0, ...runs.map(run => run.length)) + 1)
  return `${fence} ${text} ${fence}`
}
