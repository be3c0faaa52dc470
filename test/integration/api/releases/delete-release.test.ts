import { expect, it } from 'vitest'
import { signToken } from '../../../support/services/api.ts'
import { manifestFile, registerRelease } from '../../../support/workspaces/stored-releases.ts'
import { ask, complete, deleteRelease, slugOf, store } from './fixture.ts'

it('deletes a release of the workspace with its manifest, and lets it begin again without maps', async () => {
  const release = await registerRelease(store, { slug: slugOf('deleted') })
  await complete(release, 1, [manifestFile(1)])
  expect((await ask(`/v3/releases/${release.slug}`)).status).toBe(200)

  const others = [await signToken({ sub: 'user_2', org: 'globex' }), await signToken({ sub: 'user_3', org: 'narrow' })]
  expect(await deleteRelease(release.slug, others[0])).toBe(404)
  expect(await deleteRelease(release.slug, others[1])).toBe(403)
  expect(await deleteRelease(release.slug)).toBe(200)
  expect(await deleteRelease(release.slug)).toBe(404)
  expect((await ask(`/v3/releases/${release.slug}`)).status).toBe(404)
  expect(await store.manifest('ws_1', release.slug)).toBeUndefined()

  await registerRelease(store, { slug: release.slug })
  const { body } = await ask(`/v3/releases/${release.slug}`)
  expect(body).toMatchObject({ release: { sourceMapCount: 0, manifest: null } })
})
