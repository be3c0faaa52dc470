import {
  CopyObjectCommand,
  DeleteObjectsCommand,
  HeadObjectCommand,
  PutObjectCommand,
  type PutObjectCommandInput,
} from '@aws-sdk/client-s3'
import { pagesOf } from '../concurrency/pages.ts'
import { TransientError } from '../runtime/errors.ts'
import { sendBody } from './body.ts'
import { checkedObjectKey } from './checked-key.ts'
import { isNoSuchObject, refusalStatus } from './errors.ts'
import type { S3Bucket } from './s3-bucket.ts'
import type { ObjectStore, PutBodyOptions, PutOptions } from './types.ts'

/** Greatest number of keys in one request to S3. */
const DELETE_BATCH = 1_000

/** Creates the writing operations of an object store. */
export function createObjectWrites(
  bucket: S3Bucket,
): Pick<ObjectStore, 'put' | 'putStream' | 'putIfAbsent' | 'deleteMany' | 'copy'> {
  const { client, name: Bucket, call } = bucket
  return {
    put: (key, body, options) =>
      call('put', async abortSignal => {
        await client.send(putCommand(bucket, key, body, options), { abortSignal })
      }),
    putStream: (key, source, size, options) =>
      call('put', (abortSignal, progress) =>
        sendBody({ source, size, abortSignal, progress }, async (Body, signal) => {
          const input = { Bucket, Key: checkedObjectKey(key), Body, ContentLength: size, ...describe(options) }
          await client.send(new PutObjectCommand(input), { abortSignal: signal })
        }),
      ),
    putIfAbsent: (key, body, options) =>
      call('put if absent', async abortSignal => {
        try {
          await client.send(putCommand(bucket, key, body, options, { IfNoneMatch: '*' }), { abortSignal })
          return 'stored'
        } catch (error) {
          if (await isRefusedAsPresent(bucket, key, error, abortSignal)) return 'exists'
          throw error
        }
      }),
    copy: (fromKey, toKey, options) =>
      call('copy', async abortSignal => {
        const command = new CopyObjectCommand({
          Bucket,
          Key: checkedObjectKey(toKey),
          CopySource: `${Bucket}/${checkedObjectKey(fromKey).split('/').map(encodeURIComponent).join('/')}`,
          MetadataDirective: 'REPLACE',
          ...describe(options),
        })
        try {
          await client.send(command, { abortSignal })
          return 'copied'
        } catch (error) {
          if (isNoSuchObject(error)) return 'absent'
          throw error
        }
      }),
    async deleteMany(keys) {
      for (const batch of pagesOf(keys, DELETE_BATCH)) {
        await call('delete', abortSignal => deleteBatch(bucket, batch, abortSignal))
      }
    },
  }
}

function putCommand(
  bucket: S3Bucket,
  key: string,
  body: Buffer,
  options: PutBodyOptions,
  condition?: Pick<PutObjectCommandInput, 'IfNoneMatch'>,
): PutObjectCommand {
  const input = { Bucket: bucket.name, Key: checkedObjectKey(key), Body: body, ...describe(options), ...condition }
  const command = new PutObjectCommand(input)
  const { sha256 } = options
  if (sha256 !== undefined) {
    command.middlewareStack.add(
      next => args => {
        // The signer hashes a body only if this header is absent.
        const { headers } = args.request as { readonly headers: Record<string, string> }
        headers['x-amz-content-sha256'] = sha256
        return next(args)
      },
      { step: 'build', name: 'stateDigest' },
    )
  }
  return command
}

function describe(options: PutOptions): Pick<PutObjectCommandInput, 'ContentType' | 'Metadata'> {
  return { ContentType: options.contentType, ...(options.metadata ? { Metadata: options.metadata } : {}) }
}

/**
 * Returns whether a put was refused because the object exists. 412 means that it exists. 409 (S3 only) means that another
 * request for this key was in progress, with an unknown result. If the object exists now, that request was a put too.
 */
async function isRefusedAsPresent(
  bucket: S3Bucket,
  key: string,
  refusal: unknown,
  abortSignal: AbortSignal,
): Promise<boolean> {
  const status = refusalStatus(refusal)
  if (status !== 409) return status === 412
  try {
    await bucket.client.send(new HeadObjectCommand({ Bucket: bucket.name, Key: key }), { abortSignal })
    return true
  } catch (error) {
    if (isNoSuchObject(error)) return false
    throw error
  }
}

async function deleteBatch(bucket: S3Bucket, keys: readonly string[], abortSignal: AbortSignal): Promise<void> {
  const command = new DeleteObjectsCommand({
    Bucket: bucket.name,
    Delete: { Objects: keys.map(key => ({ Key: checkedObjectKey(key) })), Quiet: true },
  })
  const { Errors: errors = [] } = await bucket.client.send(command, { abortSignal })
  const failed = errors.filter(({ Code }) => Code !== 'NoSuchKey')
  const [first] = failed
  if (!first) return
  const reason = [first.Code, first.Message].filter(Boolean).join(': ')
  throw new TransientError(
    `S3 delete: ${failed.length} of ${keys.length} objects were not deleted, first ${first.Key}: ${reason}`,
  )
}
