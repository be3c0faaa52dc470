import { Readable } from 'node:stream'
import {
  GetBucketLifecycleConfigurationCommand,
  GetObjectCommand,
  type GetObjectCommandOutput,
  HeadBucketCommand,
  HeadObjectCommand,
  type HeadObjectCommandOutput,
  ListObjectsV2Command,
  S3ServiceException,
} from '@aws-sdk/client-s3'
import { PermanentError, TransientError } from '../runtime/errors.ts'
import { guardBody, readWholeBody } from './body.ts'
import { checkedObjectKey } from './checked-key.ts'
import { isNoSuchObject, refusalStatus } from './errors.ts'
import type { S3Bucket } from './s3-bucket.ts'
import type { ByteRange, Expiration, ListedObject, ObjectHead, ObjectStore } from './types.ts'

type Reads = 'get' | 'getStream' | 'head' | 'list' | 'expirations'

/** Creates the reading operations of an object store. */
export function createObjectReads(bucket: S3Bucket): Pick<ObjectStore, Reads> {
  return {
    get: (key, limitBytes) =>
      bucket.call('get', async abortSignal => {
        const found = await open(bucket, key, undefined, abortSignal)
        if (!found) return undefined
        if (found.head.size > limitBytes) {
          found.body.destroy()
          throw new PermanentError(`S3 get: the object has ${found.head.size} bytes, over the limit of ${limitBytes}`)
        }
        return { ...found.head, body: await readWholeBody(found.body, limitBytes) }
      }),
    getStream: (key, range) =>
      bucket.call('get', async abortSignal => {
        const found = await open(bucket, key, range, abortSignal)
        return found && { ...found.head, body: guardBody(found.body, bucket.requestTimeoutMs) }
      }),
    head: key => bucket.call('head', abortSignal => head(bucket, key, abortSignal)),
    list: (prefix, after) => list(bucket, prefix, after),
    expirations: () => bucket.call('expirations', abortSignal => readExpirations(bucket, abortSignal)),
  }
}

async function open(
  bucket: S3Bucket,
  key: string,
  range: ByteRange | undefined,
  abortSignal: AbortSignal,
): Promise<{ head: ObjectHead; body: Readable } | undefined> {
  const command = new GetObjectCommand({
    Bucket: bucket.name,
    Key: checkedObjectKey(key),
    ...(range ? { Range: rangeHeader(range) } : {}),
  })
  const output = await absentAsUndefined(bucket.client.send(command, { abortSignal }))
  if (!output) return undefined
  if (!(output.Body instanceof Readable)) throw new TransientError('S3 get: the response has no body')
  if (range && output.ContentRange === undefined) {
    output.Body.destroy()
    throw new TransientError('S3 get: the store sent the whole object instead of a range')
  }
  return { head: headOf(output, output.ContentRange), body: output.Body }
}

function rangeHeader({ start, end }: ByteRange): string {
  if (start < 0 || (end !== undefined && end <= start))
    throw new PermanentError(`S3 get: no bytes from ${start} to ${end}`)
  return end === undefined ? `bytes=${start}-` : `bytes=${start}-${end - 1}`
}

/** Reads the properties of an object. The response to a HEAD does not show whether the object or the bucket is missing. */
async function head(bucket: S3Bucket, key: string, abortSignal: AbortSignal): Promise<ObjectHead | undefined> {
  const output = await absentAsUndefined(
    bucket.client.send(new HeadObjectCommand({ Bucket: bucket.name, Key: checkedObjectKey(key) }), { abortSignal }),
  )
  if (output) return headOf(output)
  await bucket.client.send(new HeadBucketCommand({ Bucket: bucket.name }), { abortSignal })
  return undefined
}

async function absentAsUndefined<T>(response: Promise<T>): Promise<T | undefined> {
  try {
    return await response
  } catch (error) {
    if (isNoSuchObject(error)) return undefined
    throw error
  }
}

function headOf(output: GetObjectCommandOutput | HeadObjectCommandOutput, contentRange?: string): ObjectHead {
  const size = contentRange === undefined ? output.ContentLength : Number(contentRange.split('/').at(-1))
  if (size === undefined || !Number.isSafeInteger(size)) throw new TransientError('S3: the response has no size')
  return {
    size,
    contentType: output.ContentType ?? 'application/octet-stream',
    metadata: output.Metadata ?? {},
    etag: (output.ETag ?? '').replaceAll('"', ''),
  }
}

async function* list(bucket: S3Bucket, prefix: string, after?: string): AsyncGenerator<readonly ListedObject[]> {
  let token: string | undefined
  do {
    const command = new ListObjectsV2Command({
      Bucket: bucket.name,
      Prefix: prefix,
      // Some characters of keys are not allowed in XML.
      EncodingType: 'url',
      ...(token === undefined ? {} : { ContinuationToken: token }),
      ...(token === undefined && after !== undefined ? { StartAfter: after } : {}),
    })
    const page = await bucket.call('list', abortSignal => bucket.client.send(command, { abortSignal }))
    const decode = page.EncodingType === 'url' ? decodeListedKey : (text: string) => text
    yield (page.Contents ?? []).map(({ Key = '', Size = 0, ETag = '', LastModified }) => ({
      key: decode(Key),
      size: Size,
      etag: ETag.replaceAll('"', ''),
      lastModifiedMs: LastModified?.getTime() ?? Number.POSITIVE_INFINITY,
    }))
    const next = page.IsTruncated ? page.NextContinuationToken : undefined
    if (page.IsTruncated && (next === undefined || next === token)) {
      throw new TransientError('S3 list: a page is not the last one but has no token for the next')
    }
    token = next
  } while (token !== undefined)
}

/** Decodes a listed key. Some stores encode a space as `+`, as in a form; a plus is always `%2B`. */
function decodeListedKey(text: string): string {
  return decodeURIComponent(text.replaceAll('+', ' '))
}

/** A store without such rules refuses the request, or answers with something else. So does one whose policy forbids it. */
async function readExpirations(bucket: S3Bucket, abortSignal: AbortSignal): Promise<Expiration[] | undefined> {
  const command = new GetBucketLifecycleConfigurationCommand({ Bucket: bucket.name })
  try {
    const { Rules: rules } = await bucket.client.send(command, { abortSignal })
    return rules?.flatMap(({ Status: status, Filter: filter, Prefix: before, Expiration: expiration }) => {
      // A rule for tags or sizes is not for all objects of its prefix.
      const isForAll = filter === undefined || Object.keys(filter).every(name => name === 'Prefix')
      if (status !== 'Enabled' || expiration?.Days === undefined || !isForAll) return []
      return [{ prefix: filter?.Prefix ?? before ?? '', days: expiration.Days }]
    })
  } catch (error) {
    if (error instanceof S3ServiceException && error.name === 'NoSuchLifecycleConfiguration') return []
    if (refusalStatus(error) !== undefined) return undefined
    throw error
  }
}
