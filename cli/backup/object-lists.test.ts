import { expect, it } from 'vitest'
import type { ListedObject } from '../../shared/object-store/types.ts'
import { collect } from '../../test/support/oracles/collect.ts'
import { differencesOf, readLists, writeLists } from './object-lists.ts'

const objectOf = (key: string, etag = 'e'): ListedObject => ({ key, size: 1, etag, lastModifiedMs: 1 })
async function* from(objects: Iterable<ListedObject>): AsyncGenerator<ListedObject> {
  yield* objects
}

/** A bucket in memory. */
function bucket() {
  const bodies = new Map<string, Buffer>()
  return {
    bodies,
    async put(key: string, body: Buffer) {
      bodies.set(key, body)
    },
    async get(key: string) {
      const body = bodies.get(key)
      return body && { body, size: body.length, contentType: '', metadata: {}, etag: '' }
    },
  }
}

it('reads the objects that were written, also if they need several lists', async () => {
  const store = bucket()
  const objects = Array.from({ length: 100_001 }, (_, i) => objectOf(String(i).padStart(6, '0')))
  const listed = await writeLists(store, 'lists/', from(objects))
  expect(listed).toMatchObject({ count: 100_001, bytes: 100_001, lists: [{ entries: 100_000 }, { entries: 1 }] })
  expect(await collect(readLists(store, listed))).toEqual(objects)
})

it('throws for a list that was changed or removed', async () => {
  const store = bucket()
  const listed = await writeLists(store, 'lists/', from([objectOf('a')]))
  const [key = ''] = store.bodies.keys()
  store.bodies.set(key, Buffer.from('other'))
  await expect(collect(readLists(store, listed))).rejects.toThrow(`changed: ${key}`)
  store.bodies.delete(key)
  await expect(collect(readLists(store, listed))).rejects.toThrow(`missing: ${key}`)
})

it('finds what is missing or was changed, whatever else is there', async () => {
  const listed = ['b', 'c', 'd', 'f', 'g'].map(key => objectOf(key))
  const present = [objectOf('a'), objectOf('b'), objectOf('d', 'other'), objectOf('e'), objectOf('f')]
  const found = await collect(differencesOf(from(listed), from(present)))
  expect(found.map(({ listed, fault }) => `${fault} ${listed.key}`)).toEqual(['missing c', 'changed d', 'missing g'])
})
