import { describe, expect, it } from 'vitest'
import { mentionsOf } from './mentions.ts'

const mentions = mentionsOf({
  phrases: ['zora.quill@example.com', 'Zora Quill', 'user-47', 'abc', 'Łukasz'],
  ids: new Set(['session-1', 'a b/ü']),
})

describe('a text that names a person', () => {
  it.each([
    'ask ZORA.QUILL@example.com.',
    '(zora quill)',
    'user-47',
    'user-470 and user-47',
    'łukasz: same here',
    'https://penstock.example/console/sessions/session-1?t=5',
    'session-1, twice',
    'see session-1.',
    '`session-1`',
    '[session-1]: here',
    'session:session-1',
    'https://penstock.example/console/sessions/a%20b%2F%C3%BC',
    '"a b/ü" again',
  ])('%j does', text => expect(mentions(text)).toBe(true))

  it.each(['azora.quill@example.com', 'Zora Quills', 'user-470', 'abc', 'Łukasza', 'session-12', 'session', ''])(
    '%j does not',
    text => expect(mentions(text)).toBe(false),
  )
})
