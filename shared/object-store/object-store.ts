import { GetObjectCommand } from '@aws-sdk/client-s3'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import type { ObjectStoreSettings } from '../runtime/config.ts'
import { checkedObjectKey } from './checked-key.ts'
import { createObjectReads } from './reads.ts'
import { openBucket, type S3Bucket } from './s3-bucket.ts'
import { createQuerySigner, encodeStrictly, type QuerySigner, type SignedRequest } from './sign-query.ts'
import type { ObjectStore, ObjectStoreConnection, ObserveCall, PresignedAddress } from './types.ts'
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

/** Creates the presigning operations of an object store. */
function createPresigner(bucket: S3Bucket, now: () => number): Pick<ObjectStore, 'presignPut' | 'presignGet'> {
  const { client, call } = bucket
  let base: Promise<URL> | undefined
  let current: { signer: QuerySigner; signedAtMs: number; secretAccessKey: string } | undefined

  /** Asks the SDK once for the address of the bucket. A failure is not kept, because a later call may succeed. */
  function baseAddress(): Promise<URL> {
    base ??= resolveBase(bucket).catch(error => {
      base = undefined
      throw error
    })
    return base
  }

  /** Returns the signer of a second, which all its addresses share. The SDK renews credentials that expire. */
  async function signerAt(signedAtMs: number, origin: string): Promise<QuerySigner> {
    const identity = await client.config.credentials()
    if (current?.signedAtMs !== signedAtMs || current.secretAccessKey !== identity.secretAccessKey) {
      const region = await client.config.region()
      const signer = createQuerySigner(identity, { origin, region, signedAtMs })
      current = { signer, signedAtMs, secretAccessKey: identity.secretAccessKey }
    }
    return current.signer
  }

  function presign(key: string, request: Omit<SignedRequest, 'path'>): Promise<PresignedAddress> {
    const encodedKey = checkedObjectKey(key).split('/').map(encodeStrictly).join('/')
    // A signature has a resolution of one second.
    const signedAtMs = Math.floor(now() / 1_000) * 1_000
    return call('presign', async () => {
      const { origin, pathname } = await baseAddress()
      const signer = await signerAt(signedAtMs, origin)
      const url = signer.sign({ ...request, path: pathname + encodedKey })
      return { url, expiresAtMs: signedAtMs + request.expiresInS * 1_000 }
    })
  }

  return {
    async presignPut(key, { contentType, contentLength, expiresInS }) {
      const headers = {
        'content-length': String(contentLength),
        ...(contentType === undefined ? {} : { 'content-type': contentType }),
      }
      return presign(key, { method: 'PUT', headers, expiresInS })
    },
    presignGet: async (key, expiresInS) => presign(key, { method: 'GET', headers: {}, expiresInS }),
  }
}

/** Returns the address of a bucket up to its keys. The SDK decides whether the bucket is in the host or in the path. */
async function resolveBase({ client, name }: S3Bucket): Promise<URL> {
  const probe = 'key'
  const url = new URL(await getSignedUrl(client, new GetObjectCommand({ Bucket: name, Key: probe })))
  return new URL(url.pathname.slice(0, -probe.length), url.origin)
}

/** Creates the client of the configured bucket. A request without an answer fails after `requestTimeoutMs`. */
export function connectObjectStore(
  settings: ObjectStoreSettings,
  requestTimeoutMs = 30_000,
  observe?: ObserveCall,
): ObjectStore {
  return createObjectStore({
    endpoint: settings.S3_ENDPOINT,
    region: settings.S3_REGION,
    bucket: settings.S3_BUCKET,
    accessKeyId: settings.AWS_ACCESS_KEY_ID,
    secretAccessKey: settings.AWS_SECRET_ACCESS_KEY,
    requestTimeoutMs,
    observe,
  })
}
