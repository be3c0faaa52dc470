import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { AlertEvent } from '../../schemas/http/alerts/events.ts'
import { EXAMPLE_EVENTS } from '../../schemas/http/alerts/example-events.ts'
import { type Message, messageOf } from './message.ts'
import { renderers } from './render.ts'

/** Texts with which a client would break out of its position, among ordinary ones. */
const part = fc.oneof(
  fc.constantFrom(
    ...['<!channel>', '<!here|x>', '<@U1>', '<https://evil.example|ok>', '@everyone', '*bold* _it_ ~s~ `code`', '```'],
    ...['](javascript:alert(1))', '[x](https://evil.example)', '![](https://evil.example/p.png)', '# h', '- x', '1. x'],
    ...[
      '<script>alert(1)</script>',
      '<img src=x onerror=alert(1)>',
      '" onload="x',
      "' x='",
      '&lt;',
      '&amp;lt;',
      '</pre>',
    ],
    ...['\r\nBcc: all@evil.example', '\n\n', '\u2028', '\u0085', '\u202e', '\u2066', '\u200b', '\u0000', '\u001b[31m'],
    ...['\ud800', '\udc00', '\u{e0041}', '{{DATE(2026-01-01T00:00:00Z,SHORT)}}', '<at>x</at>', '\\', '|', '日本', '😀'],
  ),
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.string({ maxLength: 20 }),
)
const hostile = fc
  .tuple(fc.array(part, { maxLength: 6 }), fc.constantFrom(1, 1, 1, 40, 2_000))
  .map(([parts, times]) => parts.join('').repeat(times))

/** Keys whose values are of a closed form, which the schema checks. */
const CLOSED = new Set(['timestamp', 'action', 'firstSeenAt', 'lastSeenAt', 'at', 'trace', 'findingId'])

/** Replaces the texts of the data of an event; a URL gets one at its end, and an absent text may stay so. */
function withTexts(value: unknown, key: string, next: () => string): unknown {
  if (Array.isArray(value)) return value.map(entry => withTexts(entry, 'entry', next))
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([name, entry]) => [name, withTexts(entry, name, next)]))
  }
  if (typeof value !== 'string' || CLOSED.has(key)) return value
  return value.startsWith('https:') ? value + next() : next()
}

/** A change by the link of a message. */
const acknowledged = {
  ...EXAMPLE_EVENTS['finding.changed'],
  data: {
    ...EXAMPLE_EVENTS['finding.changed'].data,
    changed: { by: null, via: { receiver: 'on-call' }, action: 'acknowledged' },
  },
} as AlertEvent

const event = fc
  .tuple(
    fc.constantFrom(...Object.values(EXAMPLE_EVENTS), acknowledged),
    fc.array(hostile, { minLength: 1, maxLength: 12 }),
    fc.boolean(),
  )
  .map(([example, texts, resolved]) => {
    let at = 0
    const data = withTexts(example.data, 'data', () => texts[at++ % texts.length] ?? '') as AlertEvent['data']
    return { ...example, data: { ...data, resolved } } as AlertEvent
  })
const message = fc
  .tuple(event, fc.array(event, { maxLength: 12 }), hostile)
  .map(([first, others, name]) => messageOf([first, ...others], { id: 'rul_1', name }))

function check(holds: (message: Message) => void): void {
  fc.assert(fc.property(message, holds), { numRuns: 150 })
}

/** Returns all texts of a JSON value. */
function stringsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(stringsOf) : []
}

const UNSEEN = /(?![\n\u200b])[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/u

it('shows no character in any form that a reader does not see', () => {
  check(given => {
    const forms = Object.values(renderers).map(render => render(given, 'k'))
    for (const text of forms.flatMap(stringsOf)) expect(text).not.toMatch(UNSEEN)
  })
})

it('begins every line of plain text with a text of its own', () => {
  const own =
    /^(?:\d+\. |At |Source: |Caused by |Comment: |Open the |Acknowledge, |Watch the |and \d+ other|(?:Service|Surface): )/
  const facts = /^(?:Environment|Release|Occurrences|Hit|First seen|Last seen|Expression): /
  check(given => {
    const [title, , ...lines] = renderers.text(given).split('\n')
    expect(title).toBe(given.title)
    const changed = new Set(given.items.map(item => item.changed))
    const footer = lines.pop()
    expect(footer).toMatch(/^(?:Critical|Error|Warning|Info|Ended) · Rule: /)
    for (const line of lines) expect(line === '' || changed.has(line) || own.test(line) || facts.test(line)).toBe(true)
  })
})

it('leaves no punctuation of a client in Markdown that is not escaped or in code', () => {
  check(given => {
    for (const line of renderers.markdown(given).split('\n')) {
      const bare = line
        .replace(/^### /, '')
        .replace(/^(?:At|Source:|Caused by) (`+)(?!`)(?:(?!(?<!`)\1(?!`)).)+\1(?: {2})?$/, '')
        .replaceAll(/\\[!-/:-?[-`{-~]/g, '')
        .replaceAll(/\[(?:(?:Open|Watch) the \w+|Acknowledge, resolve or ignore)\]\(https:[^\s()<>"'`\\|]*\)/g, '')
        .replaceAll(/\*\*(.*?)\*\*/g, '$1')
        .replace(/^Comment: /, '')
        .replaceAll(/(^| · )(?:First seen|Last seen|[A-Z][a-z]+): /g, '$1')
        .replaceAll('@\u200b', '')
      expect(bare).not.toMatch(/[!-/:-@[-`{-~]/)
    }
  })
})

it('stays within the limits of Slack, and makes no mention and no link of a text of a client', () => {
  check(given => {
    const { text, blocks } = renderers.slack(given)
    expect(blocks.length).toBeLessThanOrEqual(50)
    expect(text).not.toMatch(/[<>]|&(?!amp;|lt;|gt;)/)
    for (const block of blocks) {
      const fields = 'fields' in block ? block.fields : 'elements' in block ? block.elements : []
      expect(fields.length).toBeLessThanOrEqual(10)
      for (const object of 'text' in block ? [block.text] : fields) {
        const max = block.type === 'header' ? 150 : 'text' in block ? 3_000 : 2_000
        expect(object.text.length).toBeGreaterThan(0)
        expect(object.text.length).toBeLessThanOrEqual(max)
        const links =
          object.type === 'mrkdwn'
            ? /<https:[^<>|\s]+\|(?:(?:Open|Watch) the \w+|Acknowledge, resolve or ignore)>/g
            : /$^/g
        const rest = object.text.replaceAll(links, '')
        expect(rest).not.toMatch(/[<>]|&(?!amp;|lt;|gt;)/)
        if (object.type === 'mrkdwn') expect(rest).toMatch(/^(?: · )*$/)
      }
    }
  })
})

it('stays within the limit of Teams, and has texts only where they are no Markdown', () => {
  check(given => {
    const body = renderers.teams(given)
    expect(Buffer.byteLength(JSON.stringify(body))).toBeLessThanOrEqual(25_000)
    for (const element of body.attachments[0].content.body) {
      if (element.type === 'ActionSet') {
        for (const { title, url } of element.actions)
          expect(`${title} ${url}`).toMatch(/^(?:(?:Open|Watch) the \w+|Acknowledge, resolve or ignore) https:/)
      } else for (const { text } of element.inlines) expect(text).not.toMatch(/\{\{(?:DATE|TIME)/)
    }
  })
})

it('fits the longest event in every alphabet into a card, and of several as many as it can', () => {
  const example = EXAMPLE_EVENTS['finding.commented']
  for (const character of ['日', '\\', '"', '😀', '&', '\u007f']) {
    const data = withTexts(example.data, 'data', () => character.repeat(2_000)) as object
    const chain = Array.from({ length: 8 }, () => ({ type: character.repeat(200), message: character.repeat(1_000) }))
    const longest = { ...example, data: { ...data, chain } } as AlertEvent
    const rule = { id: 'rul_1', name: character.repeat(200) }
    const cards = [messageOf([longest], rule), messageOf([longest, ...Array.from({ length: 11 }, () => longest)], rule)]
    for (const card of cards.map(renderers.teams)) {
      expect(Buffer.byteLength(JSON.stringify(card))).toBeLessThanOrEqual(25_000)
      expect(card.attachments[0].content.body.length).toBeGreaterThan(5)
    }
  }
})

it('stays within the limits of PagerDuty', () => {
  check(given => {
    const { dedup_key, payload, links } = renderers.pagerduty(given, 'k')
    expect(dedup_key.length).toBeLessThanOrEqual(255)
    expect(payload.summary.length).toBeLessThanOrEqual(1_024)
    expect(payload.summary).not.toBe('')
    for (const { href } of links) expect(href).toMatch(/^https:/)
  })
})

it('has one line as the subject of an e-mail, and no tag in its HTML that is not its own', () => {
  const own =
    /^<(?:!doctype html|html lang="en"|meta [a-z]+="[\w, -]+"(?: content="[\w= -]+")?|h1 class="\w+"|table role="presentation"|a href="https:[^"'<>\s]*"|\/?(?:html|head|title|style|body|main|h1|h2|p|pre|blockquote|code|table|tr|td|a|footer))>$/
  check(given => {
    const { subject, html } = renderers.email(given)
    expect(subject).not.toMatch(/\p{Cc}/u)
    expect(subject.length).toBeLessThanOrEqual(150)
    expect(subject).not.toBe('')
    for (const tag of html.match(/<[^>]*>/g) ?? []) expect(tag).toMatch(own)
    expect(html.replaceAll(/<[^>]*>/g, '')).not.toMatch(/[<>]/)
  })
})
