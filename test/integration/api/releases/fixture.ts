import { Redis } from 'ioredis'
import { afterAll, expect } from 'vitest'
import { releaseAnswerSchema } from '../../../../schemas/http/releases/schemas.ts'
import type { Release } from '../../../../schemas/records/directory.ts'
import type { ManifestFile } from '../../../../schemas/records/manifest.ts'
import { HOUR_MS } from '../../../../schemas/units.ts'
import { createReleaseStore, releaseKeys } from '../../../../shared/directory/release-store.ts'
import { createObjectStore } from '../../../../shared/object-store/object-store.ts'
import { createDatabase, putWorkspace, signToken, startApi } from '../../../support/services/api.ts'
import { s3Settings } from '../../../support/services/services.ts'
import { sharedServices } from '../../../support/services/shared-services.ts'
import { completeRelease } from '../../../support/workspaces/stored-releases.ts'

const DATABASE = `api_releases_${process.pid}`
/** Four hours ago, because retention removes rows older than a month. */
export const NOW = Date.now() - 4 * HOUR_MS
export const slugOf = (name: string) => `rel_${process.pid}${name}`

async function request(baseUrl: string, path: string, token: string) {
  const response = await fetch(baseUrl + path, { headers: { authorization: `Bearer ${token}` } })
  return {
    status: response.status,
    retryAfter: response.headers.get('retry-after'),
    body: (await response.json()) as unknown,
  }
}

const services = sharedServices()
export const redis = new Redis(services.redisUrl)
export const store = createReleaseStore(redis)
export const objects = createObjectStore({ ...services.s3, requestTimeoutMs: 10_000 })
export const client = await createDatabase(services.clickhouseUrl, DATABASE)
await putWorkspace(services.redisUrl, { id: 'ws_1', slug: 'acme' })
await putWorkspace(services.redisUrl, { id: 'ws_2', slug: 'globex', userId: 'user_2' })
const narrow = { id: 'ws_3', slug: 'narrow', userId: 'user_3', permissions: ['org:findings:read'] } as const
await putWorkspace(services.redisUrl, narrow)
await redis.del(releaseKeys.releases('ws_1'), releaseKeys.releases('ws_2'))
const api = await startApi(services, DATABASE, s3Settings(services.s3))
const token = await signToken()

afterAll(async () => {
  await api.stop()
  objects.close()
  redis.disconnect()
  await client.command({ query: `DROP DATABASE ${DATABASE}` })
  await client.close()
})

export const ask = (path: string, bearer = token) => request(api.baseUrl, path, bearer)

export async function deleteRelease(slug: string, bearer = token): Promise<number> {
  const headers = { authorization: `Bearer ${bearer}` }
  return (await fetch(`${api.baseUrl}/v3/releases/${slug}`, { method: 'DELETE', headers })).status
}

export async function askRelease(slug: string, query = '') {
  const { status, body } = await ask(`/v3/releases/${slug}${query}`)
  expect(status).toBe(200)
  expect(releaseAnswerSchema.parse(body)).toEqual(body)
  return releaseAnswerSchema.parse(body).release
}

export const complete = (release: Release, sequence: number, files: ManifestFile[]) =>
  completeRelease({ store, objects }, release, { sequence, files })
