import createClient from 'openapi-fetch'
import type { components, paths } from './schema.ts'

// Makes the tour with the types of openapi-typescript. A test compiles it with them, as strictly as this repository.

declare const process: { readonly env: Readonly<Record<string, string | undefined>> }

const { env } = process
const ingest = createClient<paths>({ baseUrl: env.INGEST_URL ?? '' })
const api = createClient<paths>({ baseUrl: env.API_URL ?? '' })
const user = { authorization: `Bearer ${env.SESSION_TOKEN}` }

const identified = await ingest.POST('/v3/session/identify', {
  headers: { 'x-service-public-key': env.PUBLIC_KEY ?? '' },
  body: { sessionId: 'typescript', identifier: 'user-7', source: { type: 'custom', name: 'Our sign-in' } },
})
const release = await ingest.POST('/v3/releases', {
  headers: { authorization: `Bearer ${env.SECRET_KEY}` },
  body: { version: env.VERSION ?? '' },
})
const surfaces = await api.GET('/v3/surfaces', { headers: user, params: { query: { limit: 5 } } })
const findings = await api.GET('/v3/findings', { headers: user })
const findingId = `fnd_${'a'.repeat(26)}`
const unknown = await api.GET('/v3/findings/{findingId}', { headers: user, params: { path: { findingId } } })
const missing = await api.GET('/v3/findings')
const problems: (components['schemas']['Problem'] | undefined)[] = [unknown.error, missing.error]

console.log(
  JSON.stringify({
    identified: identified.data?.ok,
    release: release.data?.releaseSlug,
    surfaces: surfaces.data?.surfaces.map(({ name }) => name),
    nextCursor: findings.data?.nextCursor,
    refusals: problems.map(problem => problem?.code),
  }),
)
