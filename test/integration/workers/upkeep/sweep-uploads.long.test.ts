import { randomBytes } from 'node:crypto'
import { afterAll, beforeEach, expect, it } from 'vitest'
import { HOUR_MS } from '../../../../schemas/units.ts'
import { forEachConcurrently } from '../../../../shared/concurrency/for-each.ts'
import { partKey, stagingKey } from '../../../../shared/object-store/object-keys.ts'
import { createObjectStore } from '../../../../shared/object-store/object-store.ts'
import type { ListedObject } from '../../../../shared/object-store/types.ts'
import { ObjectDeleter } from '../../../../workers/upkeep/delete-objects.ts'
import { sweepUploads } from '../../../../workers/upkeep/sweep-uploads.ts'
import { listObjects } from '../../../support/oracles/list-objects.ts'
import { sharedServices } from '../../../support/services/shared-services.ts'

const { s3 } = sharedServices()
const objects = createObjectStore({ ...s3, requestTimeoutMs: 10_000 })

let workspaceId: string
beforeEach(() => {
  workspaceId = `ws_${randomBytes(6).toString('hex')}`
})
afterAll(() => objects.close())

const uploadOf = (path: string) => ({ workspaceId, surfaceId: 'srf_1', slug: 'rel_1', path })
const put = (key: string) => objects.put(key, Buffer.from('upload'), { contentType: 'application/octet-stream' })
const keys = async () => (await listObjects(s3, `uploads/${workspaceId}/`)).map(({ key }) => key)

/** Runs the sweep on the uploads of this test only, because other tests use the same object store. Returns its pages. */
async function sweep(now: number, stamp = (object: ListedObject) => object): Promise<number[]> {
  const pages: number[] = []
  await sweepUploads({
    store: {
      async *list(prefix) {
        for await (const page of objects.list(`${prefix}${workspaceId}/`)) yield page.map(stamp)
      },
    },
    objects: new ObjectDeleter({
      objects,
      onDeleted: (_, count) => pages.push(count),
      stopping: new AbortController().signal,
    }),
    now: () => now,
    assertElected: async () => {},
  })
  return pages
}

it('deletes uploads that were written more than two days ago, parts and signed ones, and keeps younger ones', async () => {
  const old = [partKey(uploadOf('a.map'), 0), stagingKey(uploadOf('b.map'), { hash: 'h', size: 6 })]
  const young = [partKey(uploadOf('a.map'), 1), stagingKey(uploadOf('c.map'), { hash: 'h', size: 6 })]
  for (const key of [...old, ...young]) await put(key)
  // The store stamps all of them with the time of this test.
  await sweep(Date.now() + 47 * HOUR_MS)
  expect((await keys()).sort()).toEqual([...old, ...young].sort())
  const stamp = (object: ListedObject) =>
    old.includes(object.key) ? { ...object, lastModifiedMs: object.lastModifiedMs - 49 * HOUR_MS } : object
  await sweep(Date.now(), stamp)
  expect((await keys()).sort()).toEqual(young.sort())
  await sweep(Date.now() + 49 * HOUR_MS)
  expect(await keys()).toEqual([])
})

it('keeps uploads for which the store states no time', async () => {
  await put(partKey(uploadOf('a.map'), 0))
  await sweep(Date.now() + 1_000 * HOUR_MS, object => ({ ...object, lastModifiedMs: Number.POSITIVE_INFINITY }))
  expect(await keys()).toHaveLength(1)
})

it('deletes them in pages', async () => {
  const parts = Array.from({ length: 1_001 }, (_, part) => partKey(uploadOf('large.map'), part))
  await forEachConcurrently(parts, { concurrency: 32 }, put)
  expect(await sweep(Date.now() + 49 * HOUR_MS)).toEqual([1_000, 1])
  expect(await keys()).toEqual([])
})
