import { createHmac, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { createLocalJWKSet, errors, exportJWK, SignJWT } from 'jose'
import { describe, expect, it } from 'vitest'
import { DAY_S } from '../../schemas/units.ts'
import { TransientError } from '../../shared/runtime/errors.ts'
import { createTokenVerifier, type TokenIssuer } from './verify-token.ts'

const NOW_SECONDS = 1_800_000_000
const session = generateKeyPairSync('ed25519')
const workload = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const stranger = generateKeyPairSync('ed25519')

const sessionIssuer: TokenIssuer = {
  kind: 'session',
  issuer: 'https://login.example',
  audience: 'penstock',
  keys: session.publicKey,
  algorithms: ['EdDSA'],
}
const workloadIssuer: TokenIssuer = {
  kind: 'workload',
  issuer: 'https://workloads.example',
  audience: 'penstock-workloads',
  keys: createLocalJWKSet({ keys: [{ ...(await exportJWK(workload.publicKey)), kid: 'w1', alg: 'ES256' }] }),
  algorithms: ['EdDSA', 'ES256', 'RS256'],
}
const verify = createTokenVerifier([sessionIssuer, workloadIssuer], () => NOW_SECONDS * 1_000)

const CLAIMS = {
  iss: 'https://login.example',
  aud: 'penstock',
  sub: 'user_1',
  org: 'acme',
  exp: NOW_SECONDS + 600,
}

async function bearer(
  claims: Record<string, unknown>,
  key: KeyObject = session.privateKey,
  alg = 'EdDSA',
  kid?: string,
) {
  const header = { alg, ...(kid === undefined ? {} : { kid }) }
  return `Bearer ${await new SignJWT(claims).setProtectedHeader(header).sign(key)}`
}

const TOO_LONG = 'the token is too long: at most 8,192 characters, so let its issuer leave out groups or other claims'

const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

describe('a token verifier', () => {
  it('accepts a session token and returns its claims', async () => {
    const claims = { kind: 'session', subject: 'user_1', org: 'acme' }
    expect(await verify(await bearer(CLAIMS))).toEqual({ ok: true, claims })
    expect(await verify((await bearer(CLAIMS)).replace('Bearer', 'bearer '))).toEqual({ ok: true, claims })
  })

  it('accepts a workload token only from the issuer of workloads', async () => {
    const claims = { ...CLAIMS, iss: 'https://workloads.example', aud: 'penstock-workloads' }
    const good = await verify(await bearer(claims, workload.privateKey, 'ES256', 'w1'))
    expect(good).toEqual({ ok: true, claims: { kind: 'workload', subject: 'user_1', org: 'acme' } })
    expect(await verify(await bearer(claims, session.privateKey))).toMatchObject({ ok: false })
    expect(await verify(await bearer(CLAIMS, workload.privateKey, 'ES256', 'w1'))).toMatchObject({ ok: false })
    expect(await verify(await bearer(claims, stranger.privateKey, 'EdDSA', 'w2'))).toMatchObject({
      reason: 'the token is signed with a key that its issuer does not publish',
    })
  })

  it('returns no org when the claim is absent, empty or not a string', async () => {
    for (const org of [undefined, '', 7, ['acme'], null]) {
      expect(await verify(await bearer({ ...CLAIMS, org }))).toMatchObject({ ok: true, claims: { org: undefined } })
    }
  })

  it.each([
    ['another scheme', 'Basic dXNlcjpwYXNz', 'the Authorization header must have the form "Bearer <token>"'],
    ['a scheme alone', 'Bearer ', 'the Authorization header must have the form "Bearer <token>"'],
    ['garbage', 'Bearer garbage', 'the token is malformed'],
    ['three parts of garbage', 'Bearer a.b.c', 'the token is malformed'],
    ['of the most characters', `Bearer ${'a'.repeat(8_192)}`, 'the token is malformed'],
    ['of one more', `Bearer ${'a'.repeat(8_193)}`, TOO_LONG],
    ['far too long', `Bearer ${'a'.repeat(100_000)}`, TOO_LONG],
  ])('refuses a token that is %s', async (_, authorization, reason) => {
    expect(await verify(authorization)).toEqual({ ok: false, reason })
  })

  it.each<[string, Record<string, unknown>, string]>([
    ['has expired', { exp: NOW_SECONDS - 6 }, 'the token has expired'],
    ['never expires', { exp: undefined }, 'the token has no claim "exp"'],
    ['is not valid yet', { nbf: NOW_SECONDS + 60 }, 'the token is not valid yet'],
    ['is from another issuer', { iss: 'https://evil.example' }, 'the token is from another issuer'],
    ['names no issuer', { iss: undefined }, 'the token has no claim "iss"'],
    ['is for another audience', { aud: 'elsewhere' }, 'the token is for another audience'],
    ['was issued in the future', { iat: NOW_SECONDS + 6 }, 'the token was issued in the future'],
    ['is valid for more than 30 days', { exp: NOW_SECONDS + 31 * DAY_S }, 'the token is valid for more than 30 days'],
    ['was valid for as long', { iat: NOW_SECONDS - 30 * DAY_S }, 'the token is valid for more than 30 days'],
    ['is valid for ever', { exp: 1e300 }, 'the token is valid for more than 30 days'],
    ['names no user', { sub: undefined }, 'the token has no claim "sub"'],
    ['names a user who is not a string', { sub: 7 }, 'the claim "sub" of the token is malformed'],
    ['names an empty user', { sub: '' }, 'the claim "sub" of the token is malformed'],
    ['names a user with a lone surrogate', { sub: '\ud800' }, 'the claim "sub" of the token is malformed'],
    ['names a user with a line break', { sub: 'user\n1' }, 'the claim "sub" of the token is malformed'],
    ['names a user of 201 characters', { sub: 'u'.repeat(201) }, 'the claim "sub" of the token is malformed'],
  ])('refuses a token that %s', async (_, change, reason) => {
    expect(await verify(await bearer({ ...CLAIMS, ...change }))).toEqual({ ok: false, reason })
  })

  it('accepts only the types of access tokens', async () => {
    const sign = async (typ: string) =>
      `Bearer ${await new SignJWT(CLAIMS).setProtectedHeader({ alg: 'EdDSA', typ }).sign(session.privateKey)}`
    for (const typ of ['JWT', 'jwt', 'at+jwt', 'application/at+jwt']) {
      expect(await verify(await sign(typ)), typ).toMatchObject({ ok: true })
    }
    const reason = 'the type of the token is not JWT or at+jwt'
    for (const typ of ['logout+jwt', 'JWS', '', 'xjwt']) {
      expect(await verify(await sign(typ)), typ).toEqual({ ok: false, reason })
    }
  })

  it('tolerates clocks that differ by up to five seconds', async () => {
    expect(await verify(await bearer({ ...CLAIMS, exp: NOW_SECONDS - 4 }))).toMatchObject({ ok: true })
    expect(await verify(await bearer({ ...CLAIMS, exp: NOW_SECONDS - 5 }))).toMatchObject({ ok: false })
    expect(await verify(await bearer({ ...CLAIMS, nbf: NOW_SECONDS + 5 }))).toMatchObject({ ok: true })
    expect(await verify(await bearer({ ...CLAIMS, nbf: NOW_SECONDS + 6 }))).toMatchObject({ ok: false })
  })

  it('refuses a signature by another key, and a token that was changed after signing', async () => {
    const reason = 'the signature of the token is invalid'
    expect(await verify(await bearer(CLAIMS, stranger.privateKey))).toEqual({ ok: false, reason })
    const [header, , signature] = (await bearer(CLAIMS)).split('.')
    const forged = `${header}.${part({ ...CLAIMS, org: 'other' })}.${signature}`
    expect(await verify(forged)).toEqual({ ok: false, reason })
  })

  it('refuses the algorithm none, and HS256 with the public key as its secret', async () => {
    const reason = 'the token is signed with an algorithm that is not accepted'
    expect(await verify(`Bearer ${part({ alg: 'none' })}.${part(CLAIMS)}.`)).toEqual({ ok: false, reason })
    const signed = `${part({ alg: 'HS256' })}.${part(CLAIMS)}`
    const pem = session.publicKey.export({ type: 'spki', format: 'pem' })
    const signature = createHmac('sha256', pem).update(signed).digest('base64url')
    expect(await verify(`Bearer ${signed}.${signature}`)).toEqual({ ok: false, reason })
  })

  it('throws a TransientError when the keys cannot be fetched, instead of refusing the token', async () => {
    const keys = () => Promise.reject(new TypeError('fetch failed'))
    const offline = createTokenVerifier([{ ...sessionIssuer, keys }], () => NOW_SECONDS * 1_000)
    await expect(offline(await bearer(CLAIMS))).rejects.toThrow(TransientError)
  })

  it('remembers an accepted token until it expires or its issuer has another key', async () => {
    let seconds = NOW_SECONDS
    let looks = 0
    let key: KeyObject | undefined = session.publicKey
    const keys = async () => {
      looks++
      if (key === undefined) throw new errors.JWKSNoMatchingKey()
      return key
    }
    const remembering = createTokenVerifier([{ ...sessionIssuer, keys }], () => seconds * 1_000)
    const token = await bearer(CLAIMS)
    for (let i = 1; i <= 3; i++) {
      expect(await remembering(token)).toMatchObject({ ok: true })
      expect(looks).toBe(i)
    }
    key = undefined
    expect(await remembering(token)).toMatchObject({
      reason: 'the token is signed with a key that its issuer does not publish',
    })
    key = stranger.publicKey
    expect(await remembering(token)).toMatchObject({ reason: 'the signature of the token is invalid' })
    key = session.publicKey
    expect(await remembering(token)).toMatchObject({ ok: true })
    seconds += 606
    expect(await remembering(token)).toMatchObject({ reason: 'the token has expired' })
  })

  it('remembers no token that it has refused', async () => {
    let key = stranger.publicKey
    const verifyByKey = createTokenVerifier([{ ...sessionIssuer, keys: async () => key }], () => NOW_SECONDS * 1_000)
    const token = await bearer(CLAIMS)
    expect(await verifyByKey(token)).toMatchObject({ ok: false })
    key = session.publicKey
    expect(await verifyByKey(token)).toMatchObject({ ok: true })
  })

  it('tries every key of a set whose keys have no ids', async () => {
    const keys = createLocalJWKSet({
      keys: await Promise.all([stranger.publicKey, session.publicKey].map(key => exportJWK(key))),
    })
    const verifyBySet = createTokenVerifier([{ ...sessionIssuer, keys }], () => NOW_SECONDS * 1_000)
    expect(await verifyBySet(await bearer(CLAIMS))).toMatchObject({ ok: true })
    const other = generateKeyPairSync('ed25519')
    expect(await verifyBySet(await bearer(CLAIMS, other.privateKey))).toMatchObject({ ok: false })
  })
})
