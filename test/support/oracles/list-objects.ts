import { GetObjectCommand, ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3'
import type { S3Access } from '../services/services.ts'

/** Object of the store with its content. */
interface ListedObject {
  key: string
  bytes: Buffer
  body: string
  metadata: Record<string, string>
}

/** Returns every object below a prefix, with its bytes, its text and its metadata. */
export async function listObjects(access: S3Access, prefix: string): Promise<ListedObject[]> {
  const client = new S3Client({
    endpoint: access.endpoint,
    region: access.region,
    forcePathStyle: true,
    credentials: { accessKeyId: access.accessKeyId, secretAccessKey: access.secretAccessKey },
  })
  try {
    const listing = await client.send(new ListObjectsV2Command({ Bucket: access.bucket, Prefix: prefix }))
    return await Promise.all(
      (listing.Contents ?? []).map(async ({ Key: key = '' }) => {
        const object = await client.send(new GetObjectCommand({ Bucket: access.bucket, Key: key }))
        const bytes = Buffer.from((await object.Body?.transformToByteArray()) ?? [])
        return { key, bytes, body: bytes.toString(), metadata: object.Metadata ?? {} }
      }),
    )
  } finally {
    client.destroy()
  }
}
