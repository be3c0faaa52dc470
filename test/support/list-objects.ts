import { GetObjectCommand, ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3'
import type { S3Access } from './services.ts'

export interface ListedObject {
  key: string
  body: string
  metadata: Record<string, string>
}

/** Every object below a prefix, with its text and metadata. */
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
        return { key, body: (await object.Body?.transformToString()) ?? '', metadata: object.Metadata ?? {} }
      }),
    )
  } finally {
    client.destroy()
  }
}
