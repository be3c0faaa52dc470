import { describe, expect, it } from 'vitest'
import { identifySessionSchema, identityProvidersSchema } from './identify-session.ts'

const schema = identifySessionSchema(identityProvidersSchema.parse(undefined))
const UUID = '0190a6e4-7c1f-7d2a-9f00-0242ac120002'
const base = { sessionId: 's', identifier: 'u', source: { type: 'custom', name: 'ours' } }

describe('accepts', () => {
  it.each<[string, object]>([
    ['only what is required', {}],
    ['a session id of 1,024 characters, not UTF-16 units', { sessionId: '😀'.repeat(1_024) }],
    ['every device field', { deviceId: UUID, visitorId: UUID.toUpperCase(), fpHash: 'f' }],
    ['null for the device fields', { deviceId: null, visitorId: null, fpHash: null }],
    [
      'every text',
      { avatar: 'https://x.example/a.png', name: 'Zoë 李', email: 'zoe+x@mail.example.com', country: 'DE' },
    ],
    ['a flag as a country, because it has two characters', { country: '🇩🇪' }],
    ['traits with any values', { traits: { a: [1, null, { b: true }], '': 'x' } }],
    ['no traits', { traits: {} }],
    ['unknown fields', { later: 1, source: { ...base.source, more: 2 } }],
    ['the first provider', { source: { type: 'auth0', name: 'Auth0' } }],
    ['the second provider', { source: { type: 'clerk', name: 'Clerk' } }],
    ['the third provider', { source: { type: 'supabase', name: 'Supabase' } }],
    ['a custom source with any name', { source: { type: 'custom', name: '' } }],
  ])('%s', (_name, fields) => {
    expect(schema.safeParse({ ...base, ...fields }).error).toBeUndefined()
  })
})

describe('refuses with the field and the rule', () => {
  it.each<[object, string, RegExp]>([
    [{ sessionId: undefined }, 'sessionId', /is required/],
    [{ sessionId: '' }, 'sessionId', /1 to 1024 characters/],
    [{ sessionId: 'x'.repeat(1_025) }, 'sessionId', /1 to 1024 characters/],
    [{ sessionId: 7 }, 'sessionId', /must be a string/],
    [{ sessionId: null }, 'sessionId', /must be a string/],
    [{ identifier: undefined }, 'identifier', /is required/],
    [{ identifier: null }, 'identifier', /must be a string/],
    [{ identifier: '' }, 'identifier', /must not be empty/],
    [{ source: undefined }, 'source', /is required/],
    [{ source: 'custom' }, 'source', /must be an object/],
    [{ source: null }, 'source', /must be an object/],
    [{ source: { name: 'x' } }, 'source.type', /is required/],
    [{ source: { type: 'custom' } }, 'source.name', /is required/],
    [{ source: { type: 'custom', name: null } }, 'source.name', /must be a string/],
    [{ source: { type: 'other', name: 'Other' } }, 'source.type', /must be one of auth0, clerk, supabase, custom/],
    [{ source: { type: 'Auth0', name: 'Auth0' } }, 'source.type', /one of/],
    [{ source: { type: 'auth0', name: 'auth0' } }, 'source.name', /must be Auth0/],
    [{ source: { type: 'clerk', name: 'Auth0' } }, 'source.name', /must be Clerk/],
    [{ source: { type: '__proto__', name: 'x' } }, 'source.type', /one of/],
  ])('%j', (fields, path, message) => {
    const [issue] = schema.safeParse({ ...base, ...fields }).error?.issues ?? []
    expect(issue?.path.join('.')).toBe(path)
    expect(issue?.message).toMatch(message)
  })

  it.each([[[]], [null], ['text'], [1]])('the body %j', body => {
    expect(schema.safeParse(body).error?.issues[0]?.message).toBe('must be a JSON object')
  })
})

it('converts UUIDs to lower case', () => {
  expect(schema.parse({ ...base, deviceId: UUID.toUpperCase() }).deviceId).toBe(UUID)
})

describe('the setting of identity providers', () => {
  it('accepts other names', () => {
    const own = identifySessionSchema(identityProvidersSchema.parse('Okta, Entra ID'))
    expect(own.safeParse({ ...base, source: { type: 'entra id', name: 'Entra ID' } }).success).toBe(true)
    expect(own.safeParse({ ...base, source: { type: 'auth0', name: 'Auth0' } }).success).toBe(false)
  })

  it.each(['a,,b', 'Auth0,auth0', 'Custom', ' '])('refuses %j', setting => {
    expect(identityProvidersSchema.safeParse(setting).success).toBe(false)
  })
})
