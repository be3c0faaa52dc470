import { expect, it } from 'vitest'
import { heartbeatSchema } from './schemas.ts'

const UUID = '0190a6e4-7c1f-7d2a-9f00-0242ac120002'

it.each<[object]>([
  [{ sessionId: 's' }],
  [{ sessionId: 's', deviceId: UUID, visitorId: UUID, fpHash: 'f', later: true }],
  [{ sessionId: '\u0000 any text' }],
  [{ sessionId: 'x'.repeat(1_024), deviceId: null, visitorId: null, fpHash: null }],
])('accepts %j', body => {
  expect(heartbeatSchema.safeParse(body).success).toBe(true)
})

it.each<[unknown, string, RegExp]>([
  [{}, 'sessionId', /is required/],
  [{ sessionId: '' }, 'sessionId', /1 to 1024/],
  [{ sessionId: 'x'.repeat(1_025) }, 'sessionId', /1 to 1024/],
  [{ sessionId: 's', deviceId: 'x' }, 'deviceId', /UUID/],
  [{ sessionId: 's', visitorId: '' }, 'visitorId', /UUID/],
  [{ sessionId: 's', fpHash: 5 }, 'fpHash', /must be a string/],
  [[], '', /must be a JSON object/],
  [null, '', /must be a JSON object/],
])('refuses %j', (body, path, message) => {
  const [issue] = heartbeatSchema.safeParse(body).error?.issues ?? []
  expect(issue?.path.join('.')).toBe(path)
  expect(issue?.message).toMatch(message)
})
