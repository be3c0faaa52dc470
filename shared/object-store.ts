import { PutObjectCommand, S3Client, S3ServiceException } from '@aws-sdk/client-s3'
import { PermanentError, TransientError } from './errors.ts'

export interface ObjectStore {
  /** Stores a whole object; an object of that key is replaced. Resolves when the store has confirmed it. */
  put(key: string, body: Buffer, options: PutOptions): Promise<void>
  close(): void
}

export interface PutOptions {
  readonly contentType: string
  /** Kept as `x-amz-meta-*`: ASCII names and values. */
  readonly metadata?: Readonly<Record<string, string>>
}

export interface ObjectStoreConnection {
  readonly endpoint?: string | undefined
  readonly region: string
  readonly bucket: string
  readonly accessKeyId?: string | undefined
  readonly secretAccessKey?: string | undefined
  readonly requestTimeoutMs: number
}

/** One bucket of an S3 store. The job that calls it retries, so the SDK does not. */
export function createObjectStore(connection: ObjectStoreConnection): ObjectStore {
  const { bucket, accessKeyId, secretAccessKey } = connection
  const client = new S3Client({
    region: connection.region,
    ...(connection.endpoint === undefined ? {} : { endpoint: connection.endpoint, forcePathStyle: true }),
    ...(accessKeyId && secretAccessKey ? { credentials: { accessKeyId, secretAccessKey } } : {}),
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    maxAttempts: 1,
  })

  return {
    async put(key, body, options) {
      try {
        await client.send(
          new PutObjectCommand({
            Bucket: bucket,
            Key: key,
            Body: body,
            ContentType: options.contentType,
            ...(options.metadata ? { Metadata: options.metadata } : {}),
          }),
          { abortSignal: AbortSignal.timeout(connection.requestTimeoutMs) },
        )
      } catch (error) {
        throw classifyObjectStoreError(error)
      }
    },
    close: () => client.destroy(),
  }
}

/** Only a request that is wrong in itself is permanent; a missing bucket or a refused signature is the operator's to mend. */
const REQUEST_FAULTS = new Set([
  'EntityTooLarge',
  'KeyTooLongError',
  'InvalidRequest',
  'MetadataTooLarge',
  'InvalidArgument',
])

export function classifyObjectStoreError(error: unknown): PermanentError | TransientError {
  const name = error instanceof Error ? error.name : 'unknown'
  const message = `S3 ${name}: ${error instanceof Error ? error.message : String(error)}`
  if (error instanceof S3ServiceException && REQUEST_FAULTS.has(error.name))
    return new PermanentError(message, { cause: error })
  return new TransientError(message, { cause: error })
}
