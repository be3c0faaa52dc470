import { expect, it, vi } from 'vitest'
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

/** A directory of these keys that records its lookups, and a clock. */
function given(...keys: SurfaceKey[]) {
  const world = {
    keys: new Map(keys.map(key => [key.digest, key])),
    lookups: [] as string[],
    time: Date.parse('2026-02-01T00:00:00.000Z'),
    fault: undefined as Error | undefined,
  }
  const directory = {
    async effectiveSurfaceKey(digest: string) {
      world.lookups.push(digest)
      if (world.fault) throw world.fault
      return world.keys.get(digest)
    },
  } as unknown as Directory
  return {
    world,
    deps: {
      directory,
      logger,
      limits: { of: () => undefined },
      counts: { of: () => ({ workspaceId: '', keyId: '', isPublic: true, requests: 0, bytes: 0 }) },
      now: () => world.time,
    },
  }
}

const code = async (outcome: unknown) => ((await outcome) as { problem?: { code: string } }).problem?.code

it('accepts a cached public key at once, without a lookup, for ten seconds', async () => {
  const key = generateKey('public')
  const { world, deps } = given(keyOf(key))
  const { authenticate } = createPublicKeyAuthenticator(deps)
  const first = await authenticate(key)
  expect(first).toMatchObject({ ok: true, surface: { workspaceId: 'ws_1', surfaceId: 'srf_1' } })
  world.time += 9_999
  expect(authenticate(key)).toBe(first)
  world.time += 1
  await authenticate(key)
  expect(world.lookups).toHaveLength(2)
})

it('shares one lookup among concurrent requests, and caches that a key is unknown', async () => {
  const key = generateKey('secret')
  const { world, deps } = given()
  const { authenticate } = createSecretKeyAuthenticator(deps)
  const outcomes = await Promise.all([1, 2, 3].map(() => authenticate(`Bearer ${key}`)))
  expect(outcomes).toMatchObject(Array(3).fill({ problem: { message: 'the secret key is unknown' } }))
  expect(authenticate(`bearer  ${key}`)).toBe(outcomes[0])
  expect(world.lookups).toEqual([digestOf(key)])
})

it('applies a change of a key at once, even if a lookup was in progress', async () => {
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

it('keeps the lookups of other keys when one key changes', async () => {
  const [key, other] = [generateKey('public'), generateKey('public')]
  const { world, deps } = given(keyOf(key))
  const { authenticate, cache } = createPublicKeyAuthenticator(deps)
  const early = authenticate(key)
  cache.forget(digestOf(other))
  const first = await early
  expect(authenticate(key)).toBe(first)
  expect(world.lookups).toHaveLength(1)
})

it('forgets a key without looking at the other keys, however many are cached', async () => {
  const { deps } = given()
  const { authenticate, cache } = createPublicKeyAuthenticator({
    ...deps,
    directory: { effectiveSurfaceKey: async digest => keyOf('pk_', { digest }) },
  })
  const keys = Array.from({ length: 20_000 }, () => generateKey('public'))
  for (const key of keys) await authenticate(key)
  const iterators = Object.getPrototypeOf(new Map()[Symbol.iterator]()) as Iterator<unknown>
  const steps = vi.spyOn(iterators, 'next')
  try {
    for (const key of keys.slice(0, 5_000)) cache.forget(digestOf(key))
    expect(steps).not.toHaveBeenCalled()
  } finally {
    steps.mockRestore()
  }
  expect(authenticate(keys[4_999] ?? '')).toBeInstanceOf(Promise)
  expect(authenticate(keys[5_000] ?? '')).toMatchObject({ ok: true })
})

it('does not accept a key from the cache after the key has expired', async () => {
  const key = generateKey('secret')
  const { world, deps } = given(keyOf(key, { expiresAt: '2026-02-01T00:00:02.000Z' }))
  const { authenticate } = createSecretKeyAuthenticator(deps)
  expect(await authenticate(`Bearer ${key}`)).toMatchObject({ ok: true })
  world.time += 2_000
  expect(await authenticate(`Bearer ${key}`)).toMatchObject({ problem: { message: 'the secret key is expired' } })
})

it('returns 503 when a lookup fails, and does not cache it', async () => {
  const key = generateKey('secret')
  const { world, deps } = given(keyOf(key))
  const { authenticate } = createSecretKeyAuthenticator(deps)
  world.fault = new Error('redis is unavailable')
  expect(await code(authenticate(`Bearer ${key}`))).toBe('INGEST_INFRA_UNAVAILABLE')
  world.fault = undefined
  expect(await authenticate(`Bearer ${key}`)).toMatchObject({ ok: true })
})

it('refuses a key of the other kind, whatever its record', async () => {
  const [publicKey, secretKey] = [generateKey('public'), generateKey('secret')]
  const { world, deps } = given(keyOf(publicKey, { kind: 'secret' }), keyOf(secretKey, { kind: 'public' }))
  expect(await code(createPublicKeyAuthenticator(deps).authenticate(publicKey))).toBe('AUTH_PK_INVALID')
  expect(await code(createSecretKeyAuthenticator(deps).authenticate(`Bearer ${secretKey}`))).toBe('AUTH_MISSING')
  expect(world.lookups).toHaveLength(2)
  expect(await code(createPublicKeyAuthenticator(deps).authenticate(secretKey))).toBe('AUTH_PK_INVALID')
  expect(world.lookups).toHaveLength(2)
})

it('limits the lookups of unseen keys per second, and is not limited for keys that were seen before', async () => {
  const [seen, later] = [generateKey('public'), generateKey('public')]
  const { world, deps } = given(keyOf(seen), keyOf(later))
  const { authenticate, cache } = createPublicKeyAuthenticator(deps)
  expect(await authenticate(seen)).toMatchObject({ ok: true })
  const guesses = await Promise.all(Array.from({ length: 5_000 }, () => code(authenticate(generateKey('public')))))
  expect(guesses.filter(guess => guess === 'AUTH_PK_INVALID')).toHaveLength(4_000)
  expect(guesses.filter(guess => guess === 'INGEST_INFRA_UNAVAILABLE')).toHaveLength(1_000)
  expect(world.lookups).toHaveLength(4_001)
  expect(await authenticate(later)).toMatchObject({
    problem: { code: 'INGEST_INFRA_UNAVAILABLE', retryAfterSeconds: 1 },
  })
  cache.forgetAll()
  expect(await authenticate(seen)).toMatchObject({ ok: true })
  world.time += 1
  expect(await authenticate(later)).toMatchObject({ ok: true })
})
