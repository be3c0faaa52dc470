import { describe, expect, it } from 'vitest'
import { DEPTH_MAX, hardenEvent } from './harden-event.ts'
import { parseEvent } from './recorded-event.ts'

const element = (tagName: string, attributes: object, childNodes: object[] = []) => ({
  type: 2,
  tagName,
  attributes,
  childNodes,
  id: 1,
})

/** Returns the attributes that are left of those of an element, in a snapshot and in a change of attributes. */
function attributesLeft(tagName: string, attributes: object) {
  const node = element(tagName, { ...attributes })
  hardenEvent({ type: 2, timestamp: 1, data: { node } })
  const changed = { id: 1, attributes: { ...attributes } }
  hardenEvent({ type: 3, timestamp: 1, data: { source: 0, attributes: [changed] } })
  return { recorded: node.attributes, changed: changed.attributes }
}

describe('a hardened event', () => {
  it.each([
    ['div', { onclick: 'x', ONLOAD: 'x', OnX: 1 }],
    ['a', { href: 'javascript:x', ping: 'https://a.example', rel: 'noopener' }],
    ['a', { href: ' \u0001java\tscr\nipt:x' }],
    ['link', { rel: 'preconnect' }],
    ['meta', { 'http-equiv': 'refresh' }],
    ['img', { src: 'https://a.example/x.png', srcset: 'https://a.example 2x', attributionsrc: '' }],
    ['video', { src: '/x', poster: '//a.example', autoplay: true }],
    ['iframe', { srcdoc: '<p>', src: 'https://a.example' }],
    ['animate', { to: 'javascript:x', values: 'vbscript:x' }],
    ['div', { title: { toString: 'x' } }],
  ])('has no attribute of %s that acts: %j', (tagName, attributes) => {
    expect(attributesLeft(tagName, attributes)).toEqual({ recorded: {}, changed: {} })
  })

  it('keeps attributes that draw', () => {
    const attributes = {
      class: 'a',
      style: 'color: red',
      href: '#a',
      src: 'data:image/png;base64,AA',
      rr_dataURL: 'data:image/png;base64,AA',
      _cssText: 'p{}',
      hidden: true,
      title: null,
      colspan: 2,
    }
    expect(attributesLeft('img', attributes)).toEqual({ recorded: attributes, changed: attributes })
  })

  it('keeps no address of a frame, embedded or not', () => {
    expect(attributesLeft('iframe', { src: 'data:text/html,x' }).recorded).toEqual({})
  })

  it('has no more levels than a browser parses', () => {
    let node = element('i', {})
    for (let i = 0; i < 5_000; i++) node = element('div', {}, [node])
    hardenEvent({ type: 2, timestamp: 1, data: { node } })
    let depth = 0
    for (let at: { childNodes: object[] } | undefined = node; at; depth++)
      at = at.childNodes[0] as typeof node | undefined
    expect(depth).toBe(DEPTH_MAX)
  })

  it('has elements whose names are valid, and lists that are lists', () => {
    const node = element('<img>', [] as never)
    const event = {
      type: 3,
      timestamp: 1,
      data: { source: 0, adds: [{ node }, { node: 1 }, 7], removes: 'x', texts: null },
    }
    expect(hardenEvent(event)).toBe(true)
    expect(event.data).toMatchObject({ adds: [{ node: { tagName: 'div', attributes: {} } }], removes: [], texts: [] })
    expect(hardenEvent({ type: 2, timestamp: 1, data: { node: 'x' } })).toBe(false)
  })
})

describe('a line', () => {
  it.each(['', 'x', '[]', 'null', '{}', '{"type":2,"timestamp":1}', '{"type":2,"timestamp":"1","data":{}}'])(
    'is not an event: %s',
    line => {
      expect(parseEvent(line)).toBeUndefined()
    },
  )
})
