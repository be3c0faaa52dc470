import { expect, it } from 'vitest'
import type { SurfaceKey } from '../../schemas/records/directory.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import { digestOf, generateKey } from '../../shared/ids/credentials.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { createSecretKeyAuthenticator } from './authenticate-build.ts'
import { createPublicKeyAuthenticator } from './authenticate-surface.ts'

const logger = { warn: () => {} } as unknown as Logger

function keyOf(text: string, more: Partial<SurfaceKey> = {}): SurfaceKey {
  return {
    version: 1,
    id: 'key_1',
    kind: text.startsWith('sk_') ? 'secret' : 'public',
    digest: digestOf(text),
    prefix: 'abc',
    workspaceId: 'ws_1',
    surfaceId: 'srf_1',
    scopes: ['release:write'],
    createdAt: '2026-01-01T00:00:00.000Z',
    expiresAt: null,
    revokedAt: null,
    ...more,
  }
}

/** A directory of these keys that counts its lookups, and a clock. */
function given(...keys: SurfaceKey[]) {
  const world = {
    keys: new Map(keys.map(key => [key.digest, key])),
    lookups: [] as string[],
    time: Date.parse('2026-02-01T00:00:00.000Z'),
    fault: undefined as Error | undefined,
  }
  const directory = {
    async surfaceKeyByDigest(digest: string) {
      world.lookups.push(digest)
      if (world.fault) throw world.fault
      return world.keys.get(digest)
    },
  } as unknown as Directory
  return { world, deps: { directory, logger, now: () => world.time } }
}

const code = async (answer: unknown) => ((await answer) as { problem?: { code: string } }).problem?.code

it('a known public key is answered at once, without a lookup, for ten seconds', async () => {
  const key = generateKey('public')
  const { world, deps } = given(keyOf(key))
  const { authenticate } = createPublicKeyAuthenticator(deps)
  const first = await authenticate(key)
  expect(first).toEqual({ ok: true, surface: { workspaceId: 'ws_1', surfaceId: 'srf_1' } })
  world.time += 9_999
  expect(authenticate(key)).toBe(first)
  world.time += 1
  await authenticate(key)
  expect(world.lookups).toHaveLength(2)
})

it('all who ask at once share one lookup, and an unknown key is remembered as such', async () => {
  const key = generateKey('secret')
  const { world, deps } = given()
  const { authenticate } = createSecretKeyAuthenticator(deps)
  const answers = await Promise.all([1, 2, 3].map(() => authenticate(`Bearer ${key}`)))
  expect(answers).toMatchObject(Array(3).fill({ problem: { message: 'the secret key is unknown' } }))
  expect(authenticate(`bearer  ${key}`)).toBe(answers[0])
  expect(world.lookups).toEqual([digestOf(key)])
})

it('a change of a key counts at once, also for a lookup that was under way', async () => {
  const key = generateKey('secret')
  const { world, deps } = given(keyOf(key))
  const { authenticate, cache } = createSecretKeyAuthenticator(deps)
  const early = authenticate(`Bearer ${key}`)
  cache.forget(digestOf(key))
  expect(await early).toMatchObject({ ok: true })
  world.keys.set(digestOf(key), keyOf(key, { revokedAt: '2026-01-31T00:00:00.000Z' }))
  expect(await authenticate(`Bearer ${key}`)).toMatchObject({ problem: { message: 'the secret key is revoked' } })
  world.keys.set(digestOf(key), keyOf(key))
  expect(await code(authenticate(`Bearer ${key}`))).toBe('AUTH_MISSING')
  cache.forgetAll()
  expect(await authenticate(`Bearer ${key}`)).toMatchObject({ ok: true, build: { scopes: ['release:write'] } })
})

it('a key is not relied on past its expiry', async () => {
  const key = generateKey('secret')
  const { world, deps } = given(keyOf(key, { expiresAt: '2026-02-01T00:00:02.000Z' }))
  const { authenticate } = createSecretKeyAuthenticator(deps)
  expect(await authenticate(`Bearer ${key}`)).toMatchObject({ ok: true })
  world.time += 2_000
  expect(await authenticate(`Bearer ${key}`)).toMatchObject({ problem: { message: 'the secret key is expired' } })
})

it('a lookup that fails is 503, and is not remembered', async () => {
  const key = generateKey('secret')
  const { world, deps } = given(keyOf(key))
  const { authenticate } = createSecretKeyAuthenticator(deps)
  world.fault = new Error('redis is away')
  expect(await code(authenticate(`Bearer ${key}`))).toBe('INGEST_INFRA_UNAVAILABLE')
  world.fault = undefined
  expect(await authenticate(`Bearer ${key}`)).toMatchObject({ ok: true })
})

it('a key of one kind is none of the other, whatever the store says', async () => {
  const [publicKey, secretKey] = [generateKey('public'), generateKey('secret')]
  const { world, deps } = given(keyOf(publicKey, { kind: 'secret' }), keyOf(secretKey, { kind: 'public' }))
  expect(await code(createPublicKeyAuthenticator(deps).authenticate(publicKey))).toBe('AUTH_PK_INVALID')
  expect(await code(createSecretKeyAuthenticator(deps).authenticate(`Bearer ${secretKey}`))).toBe('AUTH_MISSING')
  expect(world.lookups).toHaveLength(2)
  expect(await code(createPublicKeyAuthenticator(deps).authenticate(secretKey))).toBe('AUTH_PK_INVALID')
  expect(world.lookups).toHaveLength(2)
})
