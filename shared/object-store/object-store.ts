import { createPresigner } from './presign.ts'
import { createObjectReads } from './reads.ts'
import { openBucket } from './s3-bucket.ts'
import type { ObjectStore, ObjectStoreConnection } from './types.ts'
import { createObjectWrites } from './writes.ts'

/** Creates the client of one bucket. `now` is the clock of presigned addresses. */
export function createObjectStore(connection: ObjectStoreConnection, now: () => number = Date.now): ObjectStore {
  const bucket = openBucket(connection)
  return {
    ...createObjectReads(bucket),
    ...createObjectWrites(bucket),
    ...createPresigner(bucket, now),
    close: () => bucket.client.destroy(),
  }
}
