import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { importSPKI, jwtVerify } from 'jose'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { isWellFormedKey } from '../../../shared/ids/credentials.ts'
import { AUTH_AUDIENCE, AUTH_ISSUER, loadSecrets } from './secrets.ts'

const DAY_MS = 86_400_000

let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'penstock-secrets-'))
})
afterEach(() => rm(directory, { recursive: true }))

it('makes them once, for the eyes of this user alone', async () => {
  const secrets = await loadSecrets(directory)
  expect(isWellFormedKey('public', secrets.publicKey)).toBe(true)
  expect(isWellFormedKey('secret', secrets.secretKey)).toBe(true)
  expect((await stat(join(directory, 'secrets.json'))).mode & 0o777).toBe(0o600)
  expect(await loadSecrets(directory)).toEqual(secrets)
})

it('signs a token for the user in the workspace, good for a year', async () => {
  const secrets = await loadSecrets(directory)
  const { payload } = await jwtVerify(secrets.sessionToken, await importSPKI(secrets.authPublicKey, 'EdDSA'), {
    issuer: AUTH_ISSUER,
    audience: AUTH_AUDIENCE,
    algorithms: ['EdDSA'],
  })
  expect(payload).toMatchObject({ sub: secrets.userId, org: 'local' })
  expect((payload.exp ?? 0) - (payload.iat ?? 0)).toBe(365 * 86_400)
})

it('replaces the token alone, and only when it has less than 30 days left', async () => {
  const { sessionToken, ...others } = await loadSecrets(directory)
  const later = await loadSecrets(directory, () => Date.now() + 334 * DAY_MS)
  expect(later.sessionToken).toBe(sessionToken)
  const muchLater = await loadSecrets(directory, () => Date.now() + 336 * DAY_MS)
  expect(muchLater.sessionToken).not.toBe(sessionToken)
  expect(muchLater).toMatchObject(others)
})

it('gives an installation from before there was a pepper one, and keeps the rest', async () => {
  const { keyPepper, ...others } = await loadSecrets(directory)
  expect(Buffer.byteLength(keyPepper)).toBeGreaterThanOrEqual(32)
  const { sessionToken: _, ...kept } = others
  await writeFile(join(directory, 'secrets.json'), JSON.stringify(others))
  const upgraded = await loadSecrets(directory)
  expect(upgraded).toMatchObject(kept)
  expect(Buffer.byteLength(upgraded.keyPepper)).toBeGreaterThanOrEqual(32)
  expect(await loadSecrets(directory)).toEqual(upgraded)
})

it('says what to do about a damaged file', async () => {
  await writeFile(join(directory, 'secrets.json'), '{}')
  await expect(loadSecrets(directory)).rejects.toThrow('remove it')
})
