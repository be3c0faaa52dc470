import { GetObjectCommand, PutObjectCommand } from '@aws-sdk/client-s3'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import { checkedObjectKey } from './checked-object-key.ts'
import type { ObjectStore, PresignedAddress } from './object-store.ts'
import type { S3Bucket } from './s3-bucket.ts'

/** Signed, so that a body of another length or content type is refused; the presigner leaves both out by itself. */
const SIGNED_PUT_HEADERS = ['host', 'content-length', 'content-type']

export function createPresigner(bucket: S3Bucket, now: () => number): Pick<ObjectStore, 'presignPut' | 'presignGet'> {
  const { client, name: Bucket, call } = bucket

  async function presign(
    command: PutObjectCommand | GetObjectCommand,
    expiresInS: number,
    signedHeaders: string[],
  ): Promise<PresignedAddress> {
    // Signatures have whole seconds.
    const signedAtMs = Math.floor(now() / 1_000) * 1_000
    const url = await call('presign', () =>
      getSignedUrl(client, command, {
        expiresIn: expiresInS,
        signingDate: new Date(signedAtMs),
        signableHeaders: new Set(signedHeaders),
      }),
    )
    return { url, expiresAtMs: signedAtMs + expiresInS * 1_000 }
  }

  return {
    presignPut(key, { contentType, contentLength, expiresInS }) {
      const input = { Bucket, Key: checkedObjectKey(key), ContentType: contentType, ContentLength: contentLength }
      return presign(new PutObjectCommand(input), expiresInS, SIGNED_PUT_HEADERS)
    },
    presignGet: (key, expiresInS) =>
      presign(new GetObjectCommand({ Bucket, Key: checkedObjectKey(key) }), expiresInS, ['host']),
  }
}
