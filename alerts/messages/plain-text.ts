import { footerOf, type Message, type MessageItem, moreOf } from './message.ts'

/** Renders a message as plain text. Each line begins with a text of ours, so that no client forges a line. */
export function plainText(message: Message): string {
  const isDigest = message.items.length > 1
  const items = message.items.map((item, i) => (isDigest ? [`${i + 1}. ${item.title}`] : []).concat(linesOf(item)))
  const more = moreOf(message)
  return [[message.title], ...items, ...(more ? [[more]] : []), [footerOf(message)]]
    .map(lines => lines.join('\n'))
    .join('\n\n')
}

function linesOf({ changed, facts, frame, chain, comment, links }: MessageItem): string[] {
  return [
    changed,
    ...(comment === undefined ? [] : [`Comment: ${comment}`]),
    ...(frame ? [`At ${frame.place}`] : []),
    ...(frame?.sourceLine === undefined ? [] : [`Source: ${frame.sourceLine}`]),
    ...chain.map(cause => `Caused by ${cause}`),
    ...facts.map(({ name, value }) => `${name}: ${value}`),
    ...links.map(({ text, url }) => `${text}: ${url}`),
  ]
}
