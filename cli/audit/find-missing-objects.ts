import type { NamedObject } from '../../clickhouse/queries/audit/select-object-keys.ts'
import type { ListedObject, ObjectStore } from '../../shared/object-store/types.ts'

/** An object that rows name and the store does not have, or has with fewer bytes. */
interface MissingObject extends NamedObject {
  /** Size of the object in the store; undefined if there is none. */
  readonly bytes: number | undefined
}

/** Objects of one page of a list. A shorter page is the last one. */
const PAGE = 1_000

/**
 * Returns the named objects that the store does not have whole. They must be in the order of their keys. Lists the store from
 * each key that is not decided yet: one request for up to 1,000 neighbours, and never one for what no row names.
 */
export async function findMissingObjects(
  objects: Pick<ObjectStore, 'list'>,
  named: readonly NamedObject[],
): Promise<MissingObject[]> {
  const missing: MissingObject[] = []
  for (let next = 0; next < named.length; ) {
    const first = named[next] as NamedObject
    const prefix = prefixOf(first.objectKey)
    const page = await firstPage(objects, prefix, first.objectKey.slice(0, -1))
    const sizes = new Map(page.map(({ key, size }) => [key, size]))
    const last = page.length < PAGE ? undefined : page.at(-1)?.key
    for (; next < named.length; next++) {
      const object = named[next] as NamedObject
      if (!object.objectKey.startsWith(prefix) || (last !== undefined && object.objectKey > last)) break
      const bytes = sizes.get(object.objectKey)
      if (bytes === undefined || bytes < object.leastBytes) missing.push({ ...object, bytes })
    }
  }
  return missing
}

/** Returns the first three parts of a key: kind, workspace and surface, whose objects are neighbours. */
function prefixOf(key: string): string {
  return `${key.split('/').slice(0, 3).join('/')}/`
}

async function firstPage(
  objects: Pick<ObjectStore, 'list'>,
  prefix: string,
  after: string,
): Promise<readonly ListedObject[]> {
  for await (const page of objects.list(prefix, after)) return page
  return []
}
