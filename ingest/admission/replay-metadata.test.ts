import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeReplayMetadata } from './replay-metadata.ts'

const base = { windowId: 'w', segmentId: 3, firstTs: 1_700_000_000_000, lastTs: 1_700_000_000_500 }
const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64')

it('decodes metadata in either alphabet, in UTF-8 or Latin-1, with blanks, and with numbers as texts', () => {
  const western = fc.string({ unit: fc.constantFrom(...'aéüßÖ "') })
  const metadata = fc.record(
    {
      windowId: fc.oneof(fc.nat(), fc.string({ unit: 'binary' }), western),
      segmentId: fc.oneof(fc.nat(), fc.string()),
      firstTs: fc.integer({ min: 0, max: 2e12 }),
      lastTs: fc.integer({ min: 2e12, max: 3e12 }),
      eventCount: fc.nat(),
      hasFullSnapshot: fc.boolean(),
      activityCount: fc.nat(),
      title: western,
    },
    { requiredKeys: ['windowId', 'segmentId', 'firstTs', 'lastTs'] },
  )
  const number = fc.constantFrom((value: number) => value, String)
  const spelling = fc.constantFrom(
    (text: string) => text,
    (text: string) => text.replace(/=+$/, ''),
    (text: string) => text.replaceAll('+', '-').replaceAll('/', '_'),
    // A query parameter in which + was not escaped.
    (text: string) => new URLSearchParams(`m=${text}`).get('m') as string,
    (text: string) => ` ${text.replace(/(.{5})/g, '$1 ')}`,
    (text: string) => text.replace(/(.{6})/g, '$1\r\n\t'),
  )
  const latin1 = (value: unknown) => {
    const text = JSON.stringify(value)
    // Other bytes may be valid UTF-8 by chance.
    return /^[\0-\x7f\xc0-\xff]*$/.test(text) ? btoa(text) : encode(value)
  }
  const encoding = fc.constantFrom(encode, latin1)
  fc.assert(
    fc.property(metadata, spelling, encoding, number, (sent, spell, encodeIt, write) => {
      const { firstTs, lastTs, eventCount } = sent
      const written = {
        ...{ firstTs: write(firstTs), lastTs: write(lastTs) },
        ...(eventCount !== undefined && { eventCount: write(eventCount) }),
      }
      const { title: _, ...known } = sent
      const expected = { ...known, windowId: String(sent.windowId).toWellFormed(), segmentId: String(sent.segmentId) }
      const decoded = decodeReplayMetadata(spell(encodeIt({ ...sent, ...written })))
      expect(decoded).toEqual({ ok: true, metadata: expected })
    }),
  )
})

it('never throws', () => {
  fc.assert(fc.property(fc.string({ unit: 'binary' }), text => typeof decodeReplayMetadata(text).ok === 'boolean'))
  fc.assert(fc.property(fc.jsonValue(), value => typeof decodeReplayMetadata(encode(value)).ok === 'boolean'))
})

describe('accepts metadata', () => {
  it.each<[string, object]>([
    ['with the same first and last time', { lastTs: base.firstTs }],
    ['with fractions of a millisecond', { firstTs: 0.25, lastTs: 0.5 }],
    ['with a string as segment id', { segmentId: 'a-1' }],
    ['with empty ids', { windowId: '', segmentId: '' }],
    ['with unknown members', { more: [] }],
    [
      'with optional members of the wrong type, which count as absent',
      { eventCount: 'many', activityCount: '-1', hasFullSnapshot: null },
    ],
  ])('%s', (_name, fields) => {
    expect(decodeReplayMetadata(encode({ ...base, ...fields }))).toMatchObject({ ok: true })
  })

  it('with a lone surrogate in an id, which becomes the replacement character', () => {
    const encoded = Buffer.from('{"windowId":"\\ud800","segmentId":0,"firstTs":1,"lastTs":1}').toString('base64')
    expect(decodeReplayMetadata(encoded)).toMatchObject({ ok: true, metadata: { windowId: '\uFFFD' } })
  })
})

describe('refuses metadata that is or has', () => {
  it.each<[string, string | undefined, string]>([
    ['absent', undefined, 'absent'],
    ['empty', '', 'absent'],
    ['not base64', '{"windowId":"w"}', 'not_base64'],
    ['base64 that is cut short', `${encode(base).slice(0, 4)}a`, 'not_base64'],
    ['not JSON', Buffer.from('windowId=w').toString('base64'), 'not_json_object'],
    ['not JSON in Latin-1', Buffer.from([0x22, 0xff]).toString('base64'), 'not_json_object'],
    ['an array', encode([base]), 'not_json_object'],
    ['null', encode(null), 'not_json_object'],
    ['no window id', encode({ ...base, windowId: undefined }), 'invalid_fields'],
    ['null as window id', encode({ ...base, windowId: null }), 'invalid_fields'],
    ['no segment id', encode({ ...base, segmentId: undefined }), 'invalid_fields'],
    ['a segment id below zero', encode({ ...base, segmentId: -1 }), 'invalid_fields'],
    ['a fraction as segment id', encode({ ...base, segmentId: 1.5 }), 'invalid_fields'],
    ['no first time', encode({ ...base, firstTs: undefined }), 'invalid_fields'],
    ['a date as time', encode({ ...base, lastTs: '2026-11-27' }), 'invalid_fields'],
    ['an empty text as time', encode({ ...base, firstTs: '' }), 'invalid_fields'],
    ['a text out of range', encode({ ...base, lastTs: '1e300' }), 'invalid_fields'],
    ['a time out of range', encode({ ...base, lastTs: 1e300 }), 'invalid_fields'],
    ['a last time before the first', encode({ ...base, lastTs: 1 }), 'invalid_fields'],
  ])('%s', (_name, encoded, reason) => {
    expect(decodeReplayMetadata(encoded)).toEqual({ ok: false, reason })
  })
})
