import { footerOf, type Message, type MessageItem, moreOf } from './message.ts'

/**
 * Maximum bytes of a body. Microsoft states about 28 KB (learn.microsoft.com/connectors/teams, "Message size limit"), and counts
 * what Teams adds to the card.
 */
const BODY_MAX_BYTES = 25_000

/** A run of text. It has no Markdown (learn.microsoft.com/adaptive-cards/schema-explorer/text-run, "text"). */
interface TextRun {
  readonly type: 'TextRun'
  readonly text: string
  readonly weight?: 'Bolder'
  readonly size?: 'Large'
  readonly color?: 'Attention' | 'Warning' | 'Good' | 'Default'
  readonly fontType?: 'Monospace'
  readonly isSubtle?: true
}

type Style = Omit<TextRun, 'type' | 'text'>

type Element =
  | { readonly type: 'RichTextBlock'; readonly inlines: readonly TextRun[]; readonly separator?: true }
  | {
      readonly type: 'ActionSet'
      readonly actions: readonly { readonly type: 'Action.OpenUrl'; readonly title: string; readonly url: string }[]
    }

/** Body of a POST to the webhook of a workflow. */
interface TeamsMessage {
  readonly type: 'message'
  readonly attachments: readonly [
    {
      readonly contentType: 'application/vnd.microsoft.card.adaptive'
      readonly contentUrl: null
      readonly content: {
        readonly $schema: 'http://adaptivecards.io/schemas/adaptive-card.json'
        readonly type: 'AdaptiveCard'
        readonly version: '1.5'
        readonly body: readonly Element[]
        readonly msteams: { readonly width: 'Full' }
      }
    },
  ]
}

/**
 * Renders a message as an Adaptive Card 1.5 for a Workflows webhook of Microsoft Teams
 * (learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using, "Send Adaptive Cards"). A
 * TextBlock would read Markdown, so every text is a TextRun. Events that do not fit in the limit of a body are counted.
 */
export function teamsMessage(message: Message): TeamsMessage {
  for (let shown = message.items.length; shown > 1; shown--) {
    const body = envelope(message, shown)
    if (Buffer.byteLength(JSON.stringify(body)) <= BODY_MAX_BYTES) return body
  }
  // The bounds of the texts of one event make it smaller than the limit.
  return envelope(message, 1)
}

function envelope(message: Message, shown: number): TeamsMessage {
  const items = message.items.slice(0, shown)
  const more = moreOf({ ...message, more: message.more + message.items.length - shown })
  const isDigest = message.items.length > 1
  return {
    type: 'message',
    attachments: [
      {
        contentType: 'application/vnd.microsoft.card.adaptive',
        contentUrl: null,
        content: {
          $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
          type: 'AdaptiveCard',
          version: '1.5',
          body: [
            paragraph([message.title, { weight: 'Bolder', size: 'Large', color: colorOf(message) }]),
            ...items.flatMap(item => [
              ...(isDigest ? [{ ...paragraph([item.title, { weight: 'Bolder' }]), separator: true } as const] : []),
              ...elementsOf(item),
            ]),
            ...(more ? [paragraph([more])] : []),
            paragraph([footerOf(message), { isSubtle: true }]),
          ],
          msteams: { width: 'Full' },
        },
      },
    ],
  }
}

function elementsOf({ changed, facts, frame, chain, comment, links }: MessageItem): Element[] {
  const shownFacts = facts.flatMap(({ name, value }, i): [string, Style?][] => [
    [`${i > 0 ? ' · ' : ''}${name}: `, { isSubtle: true }],
    [value],
  ])
  const actions = links.map(({ text, url }) => ({ type: 'Action.OpenUrl', title: text, url }) as const)
  return [
    paragraph([changed]),
    ...(comment === undefined ? [] : [paragraph(['Comment: ', { isSubtle: true }], [comment])]),
    ...(frame ? [paragraph(['At ', { isSubtle: true }], [frame.place, { fontType: 'Monospace' }])] : []),
    ...(frame?.sourceLine === undefined
      ? []
      : [paragraph(['Source: ', { isSubtle: true }], [frame.sourceLine, { fontType: 'Monospace' }])]),
    ...chain.map(cause => paragraph(['Caused by ', { isSubtle: true }], [cause])),
    ...(shownFacts.length > 0 ? [paragraph(...shownFacts)] : []),
    ...(actions.length > 0 ? [{ type: 'ActionSet', actions } as const] : []),
  ]
}

/** Cards replace `{{DATE(…)}}` and `{{TIME(…)}}` in every text, so a space of no width is put into what looks like these. */
function paragraph(...runs: readonly (readonly [text: string, style?: Style])[]) {
  const inlines = runs.map(([text, style]) => {
    return { type: 'TextRun', text: text.replaceAll(/\{\{(?=DATE|TIME)/g, '{\u200b{'), ...style } as const
  })
  return { type: 'RichTextBlock', inlines } as const
}

function colorOf({ resolved, severity }: Message): NonNullable<TextRun['color']> {
  if (resolved) return 'Good'
  return ({ critical: 'Attention', error: 'Attention', warning: 'Warning', info: 'Default' } as const)[severity]
}
