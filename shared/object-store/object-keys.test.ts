import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { checkedObjectKey } from './checked-key.ts'
import { replayKey, replayPrefix } from './object-keys.ts'

const chunk = { workspaceId: 'ws_1', surfaceId: 'srf_1', sessionId: 's', windowId: 'w', segmentId: '0' }

it('names workspace, surface, session, window and segment, each encoded', () => {
  expect(replayKey({ ...chunk, sessionId: 'a/b ü', windowId: '..', segmentId: '7' })).toBe(
    'replays/ws_1/srf_1/a%2Fb%20%C3%BC/%2E%2E/7.jsonl.gz',
  )
})

it('replaces a part over 120 encoded bytes by its hash', () => {
  expect(replayKey({ ...chunk, sessionId: 'ü'.repeat(20) })).toContain(`/${'%C3%BC'.repeat(20)}/`)
  expect(replayKey({ ...chunk, sessionId: 'ü'.repeat(21) })).toMatch(
    /^replays\/ws_1\/srf_1\/~[0-9a-f]{64}\/w\/0\.jsonl\.gz$/,
  )
})

const LONG = 'a'.repeat(130)
const HASH_OF_LONG = `~${createHash('sha256').update(LONG).digest('hex')}`

it('differs for a long session id and an id that looks like its hash', () => {
  expect(replayKey({ ...chunk, sessionId: LONG })).toContain(`/${HASH_OF_LONG}/`)
  expect(replayKey({ ...chunk, sessionId: HASH_OF_LONG })).toContain(`/%7E${HASH_OF_LONG.slice(1)}/`)
})

it.each(['a', 'a/b', '..', '~', 'ü'.repeat(90)])(
  'begins for session %j with a prefix that no other chunk has',
  sessionId => {
    const prefix = replayPrefix({ ...chunk, sessionId })
    expect(replayKey({ ...chunk, sessionId, windowId: '/', segmentId: '' }).startsWith(prefix)).toBe(true)
    for (const other of [{ sessionId: `${sessionId}b` }, { surfaceId: 'srf_12' }, { workspaceId: 'ws_12' }]) {
      expect(replayKey({ ...chunk, sessionId, ...other }).startsWith(prefix)).toBe(false)
    }
  },
)

it('differs for different chunks, and is a key that every store accepts', () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary' }).map(value => value.toWellFormed()),
    fc.constantFrom('', '.', '..', '/', '%2F', 'a/b', 'a', 'b', '~', '%7E', LONG, HASH_OF_LONG),
    fc.string({ minLength: 100, maxLength: 200 }),
  )
  const ids = fc.record({ sessionId: text, windowId: text, segmentId: text })
  fc.assert(
    fc.property(ids, ids, (one, other) => {
      const keys = [replayKey({ ...chunk, ...one }), replayKey({ ...chunk, ...other })]
      expect(keys[0] === keys[1]).toBe(JSON.stringify(one) === JSON.stringify(other))
      for (const key of keys) {
        expect(checkedObjectKey(key)).toBe(key)
        expect(key.split('/')).toHaveLength(6)
      }
    }),
  )
})
