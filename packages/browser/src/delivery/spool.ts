import { type SpooledRequest, sizeOf } from './request.ts'

/** Requests that are not acknowledged yet. Pages of an origin share it, so that the next page sends what the last one could not. */
export interface Spool {
  readonly kind: 'disk' | 'memory'
  /** Resolves when the request would survive the page. Resolves with false if it does not fit. */
  put(request: SpooledRequest): Promise<boolean>
  remove(request: SpooledRequest): Promise<void>
  /** Returns requests that other pages have left, the oldest first, up to a bound of bytes. */
  left(isLeft: (request: SpooledRequest) => boolean): Promise<readonly SpooledRequest[]>
  clear(): Promise<void>
  close(): void
}

/** Bounds of the spool. */
const MAX_BYTES = 10 * 1024 * 1024
const MAX_AGE_MS = 24 * 3_600_000
/** Bytes that are read at a time. */
const READ_BYTES = 1024 * 1024
/** A storage that does not respond is not waited for. */
const DEADLINE_MS = 2_000
const STORE = 'requests'

/** Opens the spool of the origin, or one in memory where the browser has none, refuses it or does not respond. */
export async function openSpool(name: string): Promise<Spool> {
  try {
    const database = await within(open(name))
    return new DiskSpool(database, await within(tidy(database)))
  } catch {
    // Private windows, blocked storage and full disks refuse it. The page still sends, and `status` states it.
    return new MemorySpool()
  }
}

function within<T>(work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('the storage did not respond')), DEADLINE_MS)
    work.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}

function open(name: string): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open(name, 1)
    opening.onupgradeneeded = () => opening.result.createObjectStore(STORE, { keyPath: ['page', 'order'] })
    opening.onsuccess = () => resolve(opening.result)
    opening.onerror = () => reject(opening.error)
    opening.onblocked = () => reject(new Error('the storage is blocked'))
  })
}

function done(transaction: IDBTransaction): Promise<void> {
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve()
    transaction.onabort = () => reject(transaction.error)
  })
}

/** Removes what is too old, and the oldest of what is too much. Returns the bytes that are left. */
async function tidy(database: IDBDatabase): Promise<number> {
  const transaction = database.transaction(STORE, 'readwrite')
  const store = transaction.objectStore(STORE)
  const kept: { readonly key: IDBValidKey; readonly createdAtMs: number; readonly bytes: number }[] = []
  const reading = store.openCursor()
  reading.onsuccess = () => {
    const cursor = reading.result
    if (cursor !== null) {
      const request = cursor.value as SpooledRequest
      kept.push({ key: cursor.primaryKey, createdAtMs: request.createdAtMs, bytes: sizeOf(request) })
      cursor.continue()
      return
    }
    kept.sort((a, b) => b.createdAtMs - a.createdAtMs)
    let bytes = 0
    for (const entry of kept) {
      bytes += entry.bytes
      if (bytes > MAX_BYTES / 2 || Date.now() - entry.createdAtMs > MAX_AGE_MS) store.delete(entry.key)
    }
  }
  await done(transaction)
  return Math.min(
    MAX_BYTES / 2,
    kept.reduce((sum, { bytes }) => sum + bytes, 0),
  )
}

/** A spool in IndexedDB. */
class DiskSpool implements Spool {
  readonly kind = 'disk'
  readonly #database: IDBDatabase
  /** Requests that could not be written. */
  readonly #rest = new MemorySpool()
  #bytes: number

  constructor(database: IDBDatabase, bytes: number) {
    this.#database = database
    this.#bytes = bytes
    database.onversionchange = () => database.close()
  }

  async put(request: SpooledRequest): Promise<boolean> {
    if (this.#bytes + sizeOf(request) > MAX_BYTES) return false
    this.#bytes += sizeOf(request)
    try {
      await within(this.#write(store => store.put(request)))
      return true
    } catch {
      // A full or frozen storage: the request is sent nevertheless, and only the end of the page can lose it.
      return this.#rest.put(request)
    }
  }

  async remove(request: SpooledRequest): Promise<void> {
    this.#bytes = Math.max(0, this.#bytes - sizeOf(request))
    await this.#rest.remove(request)
    await within(this.#write(store => store.delete([request.page, request.order]))).catch(ignore)
  }

  async left(isLeft: (request: SpooledRequest) => boolean): Promise<readonly SpooledRequest[]> {
    return within(this.#read(isLeft)).catch(() => [])
  }

  async clear(): Promise<void> {
    this.#bytes = 0
    await within(this.#write(store => store.clear())).catch(ignore)
  }

  close(): void {
    this.#database.close()
  }

  #write(change: (store: IDBObjectStore) => unknown): Promise<void> {
    const transaction = this.#database.transaction(STORE, 'readwrite', { durability: 'relaxed' })
    change(transaction.objectStore(STORE))
    // Without waiting for a turn of the event loop, which an ending page does not have.
    transaction.commit()
    return done(transaction)
  }

  /** Reads what other pages have left, and removes what is too old. */
  #read(isLeft: (request: SpooledRequest) => boolean): Promise<readonly SpooledRequest[]> {
    const transaction = this.#database.transaction(STORE, 'readwrite')
    const found: SpooledRequest[] = []
    let bytes = 0
    const reading = transaction.objectStore(STORE).openCursor()
    reading.onsuccess = () => {
      const cursor = reading.result
      if (cursor === null) return
      const request = cursor.value as SpooledRequest
      if (Date.now() - request.createdAtMs > MAX_AGE_MS) cursor.delete()
      else if (isLeft(request)) {
        found.push(request)
        bytes += sizeOf(request)
      }
      if (bytes < READ_BYTES) cursor.continue()
    }
    return done(transaction).then(() => found.sort((a, b) => a.createdAtMs - b.createdAtMs))
  }
}

/** The storage is not needed for what the page does. */
function ignore(): void {}

/** A spool that ends with its page. */
class MemorySpool implements Spool {
  readonly kind = 'memory'
  readonly #sizes = new Map<string, number>()
  #bytes = 0

  async put(request: SpooledRequest): Promise<boolean> {
    if (this.#bytes + sizeOf(request) > MAX_BYTES) return false
    this.#bytes += sizeOf(request)
    this.#sizes.set(`${request.page} ${request.order}`, sizeOf(request))
    return true
  }

  async remove({ page, order }: SpooledRequest): Promise<void> {
    const key = `${page} ${order}`
    this.#bytes -= this.#sizes.get(key) ?? 0
    this.#sizes.delete(key)
  }

  async left(): Promise<readonly SpooledRequest[]> {
    return []
  }

  async clear(): Promise<void> {
    this.#sizes.clear()
    this.#bytes = 0
  }

  close(): void {}
}
