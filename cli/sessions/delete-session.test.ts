import { expect, it } from 'vitest'
import { replayKey } from '../../shared/object-store/object-keys.ts'
import { replayPrefix } from './delete-session.ts'

const session = { workspaceId: 'ws_1', sessionId: 'a' }
const keyOf = (change: object) =>
  replayKey({ ...session, surfaceId: 'srf_1', windowId: 'w', segmentId: '0', ...change })

it.each(['a', 'a/b', '..', 'ü'.repeat(90)])('the prefix of session %j matches only its own chunks', sessionId => {
  const prefix = replayPrefix({ ...session, sessionId }, 'srf_1')
  expect(keyOf({ sessionId })).toContain(prefix)
  expect(keyOf({ sessionId, windowId: '/', segmentId: '' }).startsWith(prefix)).toBe(true)
  for (const other of [
    { sessionId: `${sessionId}b` },
    { sessionId, surfaceId: 'srf_12' },
    { sessionId, workspaceId: 'ws_12' },
  ]) {
    expect(keyOf(other).startsWith(prefix)).toBe(false)
  }
})
