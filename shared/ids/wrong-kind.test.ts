import { expect, it } from 'vitest'
import { PUBLIC_KEY, READER, SECRET_KEY, USER } from '../../schemas/http/credentials.ts'
import { takenKinds, wrongBearer, wrongKind } from './wrong-kind.ts'

it.each([
  [SECRET_KEY, 'wk_x', 'this operation takes a secret key of a surface (sk_…); a workspace API key (wk_…) was sent'],
  [SECRET_KEY, 'eyJh.eyJz.c2ln', 'this operation takes a secret key of a surface (sk_…); a token was sent'],
  [
    PUBLIC_KEY,
    'sk_x',
    'this operation takes a public key of a surface (pk_…); a secret key of a surface (sk_…) was sent',
  ],
  [USER, 'wk_x', 'this operation takes the token of a signed-in user; a workspace API key (wk_…) was sent'],
  [SECRET_KEY, 'sk_x', undefined],
  [READER, 'eyJh.eyJz.c2ln', undefined],
  [READER, 'anything', undefined],
])('names the kinds of credentials: %j %s', (credentials, sent, message) => {
  expect(wrongKind(credentials, sent)).toBe(message)
  expect(wrongBearer(credentials, `bearer  ${sent} `)).toBe(message)
})

it('names each kind that is taken once', () => {
  expect(takenKinds(PUBLIC_KEY)).toBe('this operation takes a public key of a surface (pk_…)')
  expect(takenKinds(READER)).toBe(
    'this operation takes the token of a signed-in user, the token of a workload or a workspace API key (wk_…)',
  )
  expect(wrongBearer(READER, 'Basic cGtfeDo=')).toBeUndefined()
})
