import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { importSPKI, jwtVerify } from 'jose'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { isWellFormedKey } from '../../../schemas/records/key-form.ts'
import { HOUR_MS, HOUR_S } from '../../../schemas/units.ts'
import { AUTH_AUDIENCE, AUTH_ISSUER, loadSecrets } from './secrets.ts'

let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'penstock-secrets-'))
})
afterEach(() => rm(directory, { recursive: true }))

it('creates the secrets once, readable only by this user', async () => {
  const secrets = await loadSecrets(directory)
  expect(isWellFormedKey('public', secrets.publicKey)).toBe(true)
  expect(isWellFormedKey('secret', secrets.secretKey)).toBe(true)
  expect((await stat(join(directory, 'secrets.json'))).mode & 0o777).toBe(0o600)
  expect(await loadSecrets(directory)).toEqual(secrets)
})

it('signs a token for the user in the workspace that is valid for half a day', async () => {
  const secrets = await loadSecrets(directory)
  const { payload } = await jwtVerify(secrets.sessionToken, await importSPKI(secrets.authPublicKey, 'EdDSA'), {
    issuer: AUTH_ISSUER,
    audience: AUTH_AUDIENCE,
    algorithms: ['EdDSA'],
  })
  expect(payload).toMatchObject({ sub: secrets.userId, org: 'local' })
  expect((payload.exp ?? 0) - (payload.iat ?? 0)).toBe(12 * HOUR_S)
})

it('replaces only the token, and only when it is an hour old', async () => {
  const { sessionToken, ...others } = await loadSecrets(directory)
  const later = await loadSecrets(directory, () => Date.now() + 0.9 * HOUR_MS)
  expect(later.sessionToken).toBe(sessionToken)
  const muchLater = await loadSecrets(directory, () => Date.now() + 1.1 * HOUR_MS)
  expect(muchLater.sessionToken).not.toBe(sessionToken)
  expect(muchLater).toMatchObject(others)
})

it('creates a pepper and a password of its own for each store', async () => {
  const secrets = await loadSecrets(directory)
  expect(Buffer.byteLength(secrets.keyPepper)).toBeGreaterThanOrEqual(32)
  const passwords = [secrets.redisPassword, secrets.directoryRedisPassword, secrets.clickhousePassword]
  expect(new Set(passwords).size).toBe(3)
  for (const password of passwords) expect(password).toMatch(/^[0-9a-f]{48}$/)
})

it('explains how to replace a damaged file', async () => {
  await writeFile(join(directory, 'secrets.json'), '{}')
  await expect(loadSecrets(directory)).rejects.toThrow('remove it')
})
