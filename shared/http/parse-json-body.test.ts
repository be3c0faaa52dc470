import { expect, it } from 'vitest'
import { identifySessionSchema } from '../../schemas/http/sessions/identify-session.ts'
import { heartbeatSchema } from '../../schemas/http/sessions/schemas.ts'
import { parseOptionalFields } from './parse-json-body.ts'

const identify = identifySessionSchema([])
const person = { sessionId: 's', identifier: 'u', source: { type: 'custom', name: 'ours' } }
const parse = (body: object) => parseOptionalFields(identify, Buffer.from(JSON.stringify(body)))

it.each<[object, string]>([
  [{ deviceId: 'no' }, 'deviceId must be a UUID'],
  [{ deviceId: '{0190a6e4-7c1f-7d2a-9f00-0242ac120002}' }, 'deviceId must be a UUID'],
  [{ visitorId: 1 }, 'visitorId must be a string'],
  [{ fpHash: '' }, 'fpHash must not be empty'],
  [{ avatar: null }, 'avatar must be a string'],
  [{ avatar: '' }, 'avatar must not be empty'],
  [{ name: null }, 'name must be a string'],
  [{ name: '' }, 'name must not be empty'],
  [{ name: ['Ada'] }, 'name must be a string'],
  [{ email: null }, 'email must be a string'],
  [{ email: '' }, 'email must be an email address'],
  [{ email: 'nobody' }, 'email must be an email address'],
  [{ country: 'DEU' }, 'country must have 1 to 2 characters'],
  [{ country: null }, 'country must be a string'],
  [{ traits: null }, 'traits must be an object'],
  [{ traits: [] }, 'traits must be an object'],
  [{ traits: 'x' }, 'traits must be an object'],
])('leaves out an optional field that breaks its rule: %j', (field, fault) => {
  const kept = { name: 'Ada', email: 'ada@example.com', country: 'GB', traits: { plan: 'team' } }
  const entries = Object.entries({ ...person, ...kept }).filter(([name]) => !(name in field))
  const value = Object.fromEntries(entries)
  expect(parse({ ...person, ...kept, ...field })).toMatchObject({ ok: true, value, leftOut: [fault] })
})

it('leaves out several fields, and names nothing where all are kept', () => {
  const leftOut = ['email must be an email address', 'name must be a string']
  expect(parse({ ...person, name: 5, email: 'x' })).toMatchObject({ ok: true, value: person, leftOut })
  expect(parse(person)).toEqual({ ok: true, value: person, json: JSON.stringify(person) })
})

it('refuses a required field that breaks its rule, with the first fault of one', () => {
  expect(parse({ ...person, name: 5, identifier: '' })).toEqual({ ok: false, fault: 'identifier must not be empty' })
  const source = { type: 'custom', name: null }
  expect(parse({ ...person, email: 'x', source })).toEqual({ ok: false, fault: 'source.name must be a string' })
  expect(parse([person])).toEqual({ ok: false, fault: 'the body must be a JSON object' })
})

it('takes null for a device as absent, in heartbeats too', () => {
  const device = { deviceId: null, visitorId: null, fpHash: null }
  const body = Buffer.from(JSON.stringify({ sessionId: 's', ...device }))
  expect(parseOptionalFields(heartbeatSchema, body)).toMatchObject({ ok: true, value: { sessionId: 's', ...device } })
  expect(parse({ ...person, ...device })).toMatchObject({ ok: true, value: { ...person, ...device } })
})
