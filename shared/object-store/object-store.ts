import type { Readable } from 'node:stream'
import { createPresigner } from './presign.ts'
import { createObjectReads } from './reads.ts'
import { openBucket } from './s3-bucket.ts'
import { createObjectWrites } from './writes.ts'

/**
 * One bucket of an S3 store. An absent object is a value; every fault is a PermanentError (the request itself is wrong)
 * or a TransientError, and nothing is tried twice: the caller retries. A call that has no answer after
 * `requestTimeoutMs` is a TransientError.
 */
export interface ObjectStore {
  /** Stores a whole object; an object of that key is replaced. Resolves when the store has confirmed it. */
  put(key: string, body: Buffer, options: PutOptions): Promise<void>
  /**
   * Stores an object of exactly `size` bytes as they come, in the bytes' own time: the deadline is for the next of them.
   * A source that throws, or that ends early or late, leaves what was there before; what it throws comes through.
   */
  putStream(key: string, source: AsyncIterable<Buffer>, size: number, options: PutOptions): Promise<void>
  /**
   * Stores the object unless there is one of that key, which then stays as it is. Of many puts at once exactly one is
   * `stored`. A put whose answer was lost may have been it: its repetition says `exists`.
   */
  putIfAbsent(key: string, body: Buffer, options: PutOptions): Promise<'stored' | 'exists'>
  /** The whole object in memory. An object over `limitBytes` is a PermanentError, and its body is not read. */
  get(key: string, limitBytes: number): Promise<StoredObject | undefined>
  /**
   * The object, or a range of it, as a stream that reads no further ahead than its buffer. The stream fails with a
   * TransientError when the store sends nothing for `requestTimeoutMs`. The caller reads it to its end or destroys it.
   */
  getStream(key: string, range?: ByteRange): Promise<StreamedObject | undefined>
  head(key: string): Promise<ObjectHead | undefined>
  /** Pages of at most 1,000 objects in the order of their keys; a page is asked for when the one before it was taken. */
  list(prefix: string): AsyncGenerator<readonly ListedObject[]>
  /** Deletes what there is of these keys. When it throws, some may be gone: calling it again is safe. */
  deleteMany(keys: Iterable<string>): Promise<void>
  /** Copies within the bucket; the copy has these options instead of those of its source. */
  copy(fromKey: string, toKey: string, options: PutOptions): Promise<'copied' | 'absent'>
  /** An address that takes one body of exactly this length (and content type, if given) by PUT, without other credentials. */
  presignPut(key: string, options: PresignPutOptions): Promise<PresignedAddress>
  presignGet(key: string, expiresInS: number): Promise<PresignedAddress>
  close(): void
}

export interface PutOptions {
  readonly contentType: string
  /** Kept as `x-amz-meta-*`: lower-case ASCII names, ASCII values. */
  readonly metadata?: Readonly<Record<string, string>>
}

export interface ObjectHead {
  /** Bytes of the whole object, of a range too. */
  readonly size: number
  readonly contentType: string
  readonly metadata: Readonly<Record<string, string>>
  /** Without its quotes. Changes when the object is replaced by other bytes. */
  readonly etag: string
}

export interface StoredObject extends ObjectHead {
  readonly body: Buffer
}

export interface StreamedObject extends ObjectHead {
  readonly body: Readable
}

/** Of bytes, like `subarray`: `end` is not part of it, and may lie behind the object's. A start behind it is a PermanentError. */
export interface ByteRange {
  readonly start: number
  readonly end?: number
}

export interface ListedObject {
  readonly key: string
  readonly size: number
}

export interface PresignPutOptions {
  /** Left out: any is taken. */
  readonly contentType?: string
  readonly contentLength: number
  readonly expiresInS: number
}

export interface PresignedAddress {
  /** A credential until it expires: never to be logged. */
  readonly url: string
  readonly expiresAtMs: number
}

export interface ObjectStoreConnection {
  readonly endpoint?: string | undefined
  readonly region: string
  readonly bucket: string
  readonly accessKeyId?: string | undefined
  readonly secretAccessKey?: string | undefined
  readonly requestTimeoutMs: number
}

export function createObjectStore(connection: ObjectStoreConnection, now: () => number = Date.now): ObjectStore {
  const bucket = openBucket(connection)
  return {
    ...createObjectReads(bucket),
    ...createObjectWrites(bucket),
    ...createPresigner(bucket, now),
    close: () => bucket.client.destroy(),
  }
}
