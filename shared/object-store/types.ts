import type { Readable } from 'node:stream'

/**
 * One bucket of an S3 store. An absent object is a value. Every failure throws a PermanentError if the request itself is
 * wrong, and a TransientError otherwise, also when the store has not responded within `requestTimeoutMs`. Nothing is
 * retried here, because the caller owns the retry.
 */
export interface ObjectStore {
  /** Stores a whole object and replaces an object with the same key. Resolves when the store has confirmed it. */
  put(key: string, body: Buffer, options: PutBodyOptions): Promise<void>
  /**
   * Stores an object of exactly `size` bytes while they arrive. The deadline applies to the next bytes, not to the whole.
   * If the source throws, or ends early or late, the previous object stays. An error of the source is rethrown.
   */
  putStream(key: string, source: AsyncIterable<Buffer>, size: number, options: PutOptions): Promise<void>
  /**
   * Stores the object unless the key exists; an existing object stays unchanged. Exactly one of several concurrent puts
   * returns `stored`. If the response of a put was lost, its repetition may return `exists` for its own object.
   */
  putIfAbsent(key: string, body: Buffer, options: PutBodyOptions): Promise<'stored' | 'exists'>
  /** Reads the whole object into memory. Throws a PermanentError, without reading the body, if it is over `limitBytes`. */
  get(key: string, limitBytes: number): Promise<StoredObject | undefined>
  /**
   * Reads the object, or a range of it, as a stream that reads no further ahead than its buffer. The stream fails with a
   * TransientError if the store sends nothing for `requestTimeoutMs`. The caller reads it to its end or destroys it.
   */
  getStream(key: string, range?: ByteRange): Promise<StreamedObject | undefined>
  /** Reads the properties of the object without its body. */
  head(key: string): Promise<ObjectHead | undefined>
  /**
   * Yields pages of at most 1,000 objects, ordered by key, after the key `after` if it is given. Each page is requested when
   * the previous one is used up.
   */
  list(prefix: string, after?: string): AsyncGenerator<readonly ListedObject[]>
  /** Deletes the objects with these keys, as far as they exist. If it throws, some may be deleted; it is safe to repeat. */
  deleteMany(keys: Iterable<string>): Promise<void>
  /** Copies within the bucket. The copy has these options instead of those of its source. */
  copy(fromKey: string, toKey: string, options: PutOptions): Promise<'copied' | 'absent'>
  /** Creates an address that accepts one PUT with exactly this length (and content type, if given), without credentials. */
  presignPut(key: string, options: PresignPutOptions): Promise<PresignedAddress>
  /** Creates an address from which the object can be read without credentials. */
  presignGet(key: string, expiresInS: number): Promise<PresignedAddress>
  /** Returns the rules by which the store deletes objects with their age. Undefined if it does not show them. */
  expirations(): Promise<readonly Expiration[] | undefined>
  /** Closes all connections. */
  close(): void
}

/** A rule of the bucket: objects whose keys begin with `prefix` are deleted when they are `days` old. */
export interface Expiration {
  readonly prefix: string
  readonly days: number
}

/** Properties that are stored with an object. */
export interface PutOptions {
  readonly contentType: string
  /** Stored as `x-amz-meta-*`: lower-case ASCII names, ASCII values. */
  readonly metadata?: Readonly<Record<string, string>>
}

/** Properties of an object whose body is in memory. */
export interface PutBodyOptions extends PutOptions {
  /** SHA-256 of the body in hex, for a caller that knows it. The signature of a request contains it. */
  readonly sha256?: string | undefined
}

/** Properties of a stored object. */
export interface ObjectHead {
  /** Size of the whole object in bytes, also if only a range was read. */
  readonly size: number
  readonly contentType: string
  readonly metadata: Readonly<Record<string, string>>
  /** ETag without its quotes. It changes when other bytes replace the object. */
  readonly etag: string
}

/** An object with its whole body in memory. */
interface StoredObject extends ObjectHead {
  readonly body: Buffer
}

/** An object whose body is read as a stream. */
export interface StreamedObject extends ObjectHead {
  readonly body: Readable
}

/**
 * A range of bytes as in `subarray`: `end` is exclusive and may be beyond the end of the object. A `start` beyond the end
 * throws a PermanentError.
 */
export interface ByteRange {
  readonly start: number
  readonly end?: number
}

/** An entry of a list of objects. */
export interface ListedObject {
  readonly key: string
  readonly size: number
  /** ETag without its quotes. */
  readonly etag: string
  /** When its bytes were written, by the clock of the store, in Unix ms. Infinite if the store does not state it. */
  readonly lastModifiedMs: number
}

/** Conditions of a presigned PUT. */
interface PresignPutOptions {
  /** The only content type accepted; if absent, any is accepted. */
  readonly contentType?: string
  readonly contentLength: number
  readonly expiresInS: number
}

/** An address that contains its own authorization. */
export interface PresignedAddress {
  /** A credential until it expires: never log it. */
  readonly url: string
  readonly expiresAtMs: number
}

/** How to reach a bucket. */
export interface ObjectStoreConnection {
  readonly endpoint?: string | undefined
  readonly region: string
  readonly bucket: string
  readonly accessKeyId?: string | undefined
  readonly secretAccessKey?: string | undefined
  readonly requestTimeoutMs: number
  /** Called at the end of each call. */
  readonly observe?: ObserveCall | undefined
}

/** How a call ended. `refused`: the call itself is wrong. `failed`: it may succeed later. */
export type CallOutcome = 'ok' | 'refused' | 'failed'

/** Observes a call by the name of its operation. */
export type ObserveCall = (operation: string, outcome: CallOutcome, durationMs: number) => void
