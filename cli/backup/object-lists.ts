import { hash } from 'node:crypto'
import { promisify } from 'node:util'
import { gunzip, gzip } from 'node:zlib'
import { z } from 'zod'
import { OBJECT_CONTENTS } from '../../schemas/records/erased-places.ts'
import { MIB } from '../../schemas/units.ts'
import { UPLOADS_PREFIX } from '../../shared/object-store/object-keys.ts'
import type { ListedObject, ObjectStore } from '../../shared/object-store/types.ts'
import type { Listed } from './manifest.ts'

/** Prefixes of the objects of an installation that a backup lists, in their order. Uploads are deleted after two days. */
export const LISTED_PREFIXES = Object.keys(OBJECT_CONTENTS)
  .filter(prefix => prefix !== UPLOADS_PREFIX)
  .sort()

/** Objects of one list, all of which are in memory while it is written or read. */
const ENTRIES_MAX = 100_000
/** A key has at most 1,024 bytes. */
const LIST_MAX_BYTES = 256 * MIB

const entrySchema = z.tuple([z.string(), z.number(), z.string(), z.number()])

/** A list of objects that was changed or removed. */
class ListError extends Error {
  override readonly name = 'ListError'
}

/** Stores lists of objects below a prefix: gzipped lines of JSON with key, size, ETag and time of the last change. */
export async function writeLists(
  target: Pick<ObjectStore, 'put'>,
  prefix: string,
  objects: AsyncIterable<ListedObject>,
): Promise<Listed> {
  const lists: Listed['lists'] = []
  let [lines, count, bytes]: [string[], number, number] = [[], 0, 0]
  const store = async () => {
    const body = await promisify(gzip)(lines.join(''))
    const key = `${prefix}${String(lists.length + 1).padStart(5, '0')}.jsonl.gz`
    await target.put(key, body, { contentType: 'application/gzip' })
    lists.push({ key, sha256: hash('sha256', body), entries: lines.length })
    lines = []
  }
  for await (const { key, size, etag, lastModifiedMs } of objects) {
    lines.push(`${JSON.stringify([key, size, etag, Number.isFinite(lastModifiedMs) ? lastModifiedMs : 0])}\n`)
    count++
    bytes += size
    if (lines.length === ENTRIES_MAX) await store()
  }
  if (lines.length > 0) await store()
  return { lists, count, bytes }
}

/** Yields the objects of lists in their order. Throws a ListError if a list is not as it was stored. */
export async function* readLists(target: Pick<ObjectStore, 'get'>, { lists }: Listed): AsyncGenerator<ListedObject> {
  for (const { key, sha256 } of lists) {
    const object = await target.get(key, LIST_MAX_BYTES)
    if (object === undefined) throw new ListError(`missing: ${key}`)
    if (hash('sha256', object.body) !== sha256) throw new ListError(`changed: ${key}`)
    const text = (await promisify(gunzip)(object.body)).toString()
    for (const line of text.split('\n')) {
      if (line === '') continue
      const [key, size, etag, lastModifiedMs] = entrySchema.parse(JSON.parse(line))
      yield { key, size, etag, lastModifiedMs }
    }
  }
}

/** Yields the objects of a bucket below prefixes, which must be in their order. */
export async function* objectsBelow(
  store: Pick<ObjectStore, 'list'>,
  prefixes: readonly string[],
): AsyncGenerator<ListedObject> {
  for (const prefix of prefixes) for await (const page of store.list(prefix)) yield* page
}

/** An object of a list that the bucket does not have, or has with other bytes. */
interface Difference {
  readonly listed: ListedObject
  readonly fault: 'missing' | 'changed'
}

/** Yields the listed objects that are not present as they were. Both are in the order of their keys. */
export async function* differencesOf(
  listed: AsyncIterable<ListedObject>,
  present: AsyncIterator<ListedObject>,
): AsyncGenerator<Difference> {
  let found = await present.next()
  for await (const object of listed) {
    while (!found.done && found.value.key < object.key) found = await present.next()
    if (found.done || found.value.key !== object.key) yield { listed: object, fault: 'missing' }
    else if (found.value.size !== object.size || found.value.etag !== object.etag) {
      yield { listed: object, fault: 'changed' }
    }
  }
}
