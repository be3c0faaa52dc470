import { expect, it } from 'vitest'
import { presentedPublicKey } from './presented-key.ts'

const KEY = 'pk_some'
const basic = (user: string, password: string) => `Basic ${btoa(`${user}:${password}`)}`

it.each<[string, Record<string, string>, string | undefined]>([
  ['its own header', { 'x-service-public-key': KEY }, KEY],
  ['its own header, well-formed or not, before all others', { 'x-service-public-key': 'a', 'api-key': KEY }, 'a'],
  ['a Bearer token', { authorization: `Bearer ${KEY}` }, KEY],
  ['a Bearer token in any case', { authorization: `bearer  ${KEY} ` }, KEY],
  ['a Bearer token whose blank an SDK left encoded', { authorization: `Bearer%20${KEY}` }, KEY],
  ['the user of Basic', { authorization: basic(KEY, '') }, KEY],
  ['the password of Basic', { authorization: basic('otlp', KEY) }, KEY],
  ['api-key', { 'api-key': KEY }, KEY],
  ['x-api-key, beside a token for a proxy', { authorization: 'Bearer ey.J.x', 'x-api-key': KEY }, KEY],
  ['no secret key', { authorization: 'Bearer sk_some', 'api-key': 'wk_some' }, undefined],
  ['no bare value', { authorization: KEY }, undefined],
  ['nothing', {}, undefined],
])('finds in a request %s', (_, headers, key) => {
  expect(presentedPublicKey({ header: name => headers[name], query: () => undefined })).toBe(key)
})

it('takes the query before what other services call a key', () => {
  expect(presentedPublicKey({ header: name => (name === 'api-key' ? KEY : undefined), query: () => 'pk_query' })).toBe(
    'pk_query',
  )
})
