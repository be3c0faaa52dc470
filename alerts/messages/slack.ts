import { escapeWithin } from './clean-text.ts'
import { footerOf, type Message, type MessageItem, moreOf } from './message.ts'

/** Limits of blocks in characters (docs.slack.dev/reference/block-kit: header block, section block and its fields). */
const HEADER_MAX_CHARACTERS = 150
const SECTION_MAX_CHARACTERS = 3_000
const FIELD_MAX_CHARACTERS = 2_000

/** A text object. Only texts of ours are `mrkdwn`: it has no escape for `*`, `_`, `~` and backticks. */
type TextObject =
  | { readonly type: 'plain_text'; readonly text: string; readonly emoji: false }
  | { readonly type: 'mrkdwn'; readonly text: string; readonly verbatim: true }

type Block =
  | { readonly type: 'header'; readonly text: TextObject }
  | { readonly type: 'section'; readonly text: TextObject }
  | { readonly type: 'section'; readonly fields: readonly TextObject[] }
  | { readonly type: 'context'; readonly elements: readonly TextObject[] }

/** Body of a message for an incoming webhook or chat.postMessage. */
interface SlackMessage {
  /** The text of the notification. */
  readonly text: string
  readonly mrkdwn: false
  readonly unfurl_links: false
  readonly unfurl_media: false
  readonly blocks: readonly Block[]
}

/**
 * Renders a message as blocks of Slack, of which it may have 50 (docs.slack.dev/reference/block-kit/blocks): at most seven for
 * one event, and two for each of several. Slack reads mentions such as `<!channel>` in every text, so `&`, `<` and `>` are
 * escaped (docs.slack.dev/messaging/formatting-message-text, "Escaping text").
 */
export function slackMessage(message: Message): SlackMessage {
  const [first, ...others] = message.items
  const items = first && others.length === 0 ? blocksOf(first) : message.items.flatMap(shortBlocksOf)
  const more = moreOf(message)
  return {
    text: escapeWithin(message.title, SECTION_MAX_CHARACTERS, escapeSlack),
    mrkdwn: false,
    unfurl_links: false,
    unfurl_media: false,
    blocks: [
      { type: 'header', text: plain(message.title, HEADER_MAX_CHARACTERS) },
      ...items,
      ...(more ? [section(more)] : []),
      { type: 'context', elements: [plain(footerOf(message), FIELD_MAX_CHARACTERS)] },
    ],
  }
}

function blocksOf({ changed, facts, frame, chain, comment, links }: MessageItem): Block[] {
  const stack = [...frameLines(frame), ...chain.map(cause => `Caused by ${cause}`)]
  const fields = facts.map(({ name, value }) => plain(`${name}: ${value}`, FIELD_MAX_CHARACTERS))
  return [
    section(changed),
    ...(comment === undefined ? [] : [section(`Comment: ${comment}`)]),
    ...(stack.length > 0 ? [section(stack.join('\n'))] : []),
    ...(fields.length > 0 ? [{ type: 'section', fields } as const] : []),
    ...linksOf(links),
  ]
}

function shortBlocksOf({ title, changed, facts, frame, comment, links }: MessageItem): Block[] {
  const shownFacts = facts.map(({ name, value }) => `${name}: ${value}`).join(' · ')
  const shownComment = comment === undefined ? [] : [`Comment: ${comment}`]
  const lines = [title, changed, ...shownComment, ...frameLines(frame), shownFacts].filter(line => line !== '')
  return [section(lines.join('\n')), ...linksOf(links)]
}

function frameLines(frame: MessageItem['frame']): string[] {
  if (!frame) return []
  return [`At ${frame.place}`, ...(frame.sourceLine === undefined ? [] : [`Source: ${frame.sourceLine}`])]
}

function linksOf(links: MessageItem['links']): Block[] {
  let shown = ''
  for (const { text, url } of links) {
    const longer = `${shown && `${shown} · `}<${escapeSlack(url)}|${text}>`
    // Half a link is none.
    if (longer.length <= SECTION_MAX_CHARACTERS) shown = longer
  }
  return shown === '' ? [] : [{ type: 'section', text: { type: 'mrkdwn', text: shown, verbatim: true } }]
}

function section(text: string): Block {
  return { type: 'section', text: plain(text, SECTION_MAX_CHARACTERS) }
}

function plain(text: string, maxCharacters: number): TextObject {
  return { type: 'plain_text', text: escapeWithin(text, maxCharacters, escapeSlack), emoji: false }
}

function escapeSlack(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
