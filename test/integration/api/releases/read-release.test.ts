import { expect, it } from 'vitest'
import { releasesPageSchema } from '../../../../schemas/http/releases/schemas.ts'
import { signToken } from '../../../support/services/api.ts'
import { at, insertRows } from '../../../support/workspaces/session-rows.ts'
import { manifestFile, registerRelease } from '../../../support/workspaces/stored-releases.ts'
import { ask, askRelease, client, complete, NOW, slugOf, store } from './fixture.ts'

it('one release has its counters, builds, symbolication and manifest', async () => {
  const slug = slugOf('whole')
  const metadata = { branch: 'main', nested: { a: [1, null, 'ü'] } }
  const created = { commit: 'c0ffee', metadata, createdAt: new Date(NOW).toISOString() }
  const release = await registerRelease(store, { slug, name: '2.0.0+1', ...created })
  const files = [manifestFile(1, { path: 'a "[{]}\\ ü😀\u2028.map', debugId: '', chunkUrl: '' }), manifestFile(2)]
  const { completedAt } = await complete(release, 9, files)
  const owner = { workspace_id: 'ws_1', surface_id: 'srf_1', release_slug: slug }
  const reports = Array.from({ length: 12 }, (_, i) => ({ ...owner, received_at: at(NOW + i), total: i }))
  const full = { result: 'ok', discover: 1, create_release: 2, upload: 0, cleanup: 4, file_count: 5, total_bytes: 6 }
  await insertRows(client, 'build_reports', [
    ...reports,
    { ...owner, received_at: at(NOW + 100), ...full, total: 10, preflight: 8 },
    { ...owner, received_at: at(NOW + 101), surface_id: 'srf_other', total: 1 },
    { ...owner, received_at: at(NOW + 102), workspace_id: 'ws_2', total: 1 },
  ])
  const frames = {
    day: at(NOW).slice(0, 10),
    workspace_id: 'ws_1',
    release_slug: slug,
    rank: 1,
  }
  await insertRows(client, 'release_frames', [
    { ...frames, variant_id: 'a'.repeat(16), frame_count: 10, resolved_frame_count: 7 },
    { ...frames, variant_id: 'b'.repeat(16), frame_count: 6, resolved_frame_count: 5 },
    { ...frames, variant_id: 'c'.repeat(16), frame_count: 9, workspace_id: 'ws_2' },
  ])

  const answer = await askRelease(slug)
  const { buildReports, ...rest } = answer
  expect(rest).toEqual({
    slug,
    version: '2.0.0+1',
    surfaceId: 'srf_1',
    commit: 'c0ffee',
    createdAt: created.createdAt,
    sourceMapCount: 2,
    sourceFileCount: 7,
    completedAt,
    metadata,
    symbolication: { resolvedFrames: 12, totalFrames: 16, share: 0.75 },
    manifest: { completedAt, files: files.map(({ sha256: _, ...file }) => file), nextCursor: null },
  })
  expect(buildReports).toHaveLength(10)
  expect(buildReports[0]).toEqual({
    receivedAt: new Date(NOW + 100).toISOString(),
    result: 'ok',
    discover: 1,
    createRelease: 2,
    upload: 0,
    cleanup: 4,
    total: 10,
    fileCount: 5,
    totalBytes: 6,
    preflight: 8,
  })
  expect(buildReports[1]).toEqual({ receivedAt: new Date(NOW + 11).toISOString(), total: 11 })
  expect(buildReports[9]).toMatchObject({ total: 3 })
})

it('a release without a completion has no manifest, and counters of 0', async () => {
  const slug = slugOf('bare')
  await registerRelease(store, { slug })
  expect(await askRelease(slug)).toMatchObject({
    sourceMapCount: 0,
    sourceFileCount: 0,
    completedAt: null,
    metadata: null,
    symbolication: { resolvedFrames: 0, totalFrames: 0, share: null },
    buildReports: [],
    manifest: null,
  })
  const empty = await registerRelease(store, { slug: slugOf('empty') })
  await complete(empty, 1, [])
  expect(await askRelease(empty.slug)).toMatchObject({ sourceMapCount: 0, manifest: { files: [], nextCursor: null } })
})

it('a release is read only within its workspace and with the permission for it', async () => {
  const slug = slugOf('mine')
  await registerRelease(store, { slug })
  const notFound = {
    status: 404,
    body: { code: 'RELEASE_NOT_FOUND', message: 'there is no such release', service: 'frontier-buildtime' },
  }
  const other = await signToken({ sub: 'user_2', org: 'globex' })
  expect(await ask(`/v3/releases/${slug}`, other)).toMatchObject(notFound)
  for (const unknown of ['rel_unknown', 'rel_', 'x', 'rel_%0A', `rel_${'x'.repeat(200)}`]) {
    expect(await ask(`/v3/releases/${unknown}`)).toMatchObject(notFound)
  }
  const { releases } = releasesPageSchema.parse((await ask('/v3/releases', other)).body)
  expect(releases.map(release => release.slug)).not.toContain(slug)
  for (const path of ['/v3/releases', `/v3/releases/${slug}`]) {
    const stranger = { ...notFound, body: { ...notFound.body, message: expect.stringContaining('not a member') } }
    expect(await ask(path, await signToken({ sub: 'stranger' }))).toMatchObject(stranger)
    expect(await ask(path, '')).toMatchObject({ status: 401, body: { code: 'AUTH_MISSING' } })
    expect(await ask(path, await signToken({ org: undefined }))).toMatchObject({
      status: 403,
      body: { code: 'AUTH_ORG_REQUIRED' },
    })
    expect(await ask(path, await signToken({ sub: 'user_3', org: 'narrow' }))).toMatchObject({
      status: 403,
      body: { code: 'PERMISSION_DENIED', message: 'the permission org:releases:read is required' },
    })
  }
})
