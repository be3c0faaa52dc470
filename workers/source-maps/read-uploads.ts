import type { Redis } from 'ioredis'
import { pagesOf } from '../../shared/concurrency/pages.ts'
import type { DeclaredMap, UploadKeys } from '../../shared/queue/upload-keys.ts'
import { TransientError } from '../../shared/runtime/errors.ts'
import { type Digested, type PartClaims, parseDigested, parsePartClaims } from './part-claims.ts'

/** The uploads of one path of a release. */
export interface PathUploads {
  readonly declared: DeclaredMap | undefined
  readonly parts: PartClaims | undefined
  /** The last single upload. */
  readonly single: Digested | undefined
}

const PAGE_PATHS = 500

/** Reads the uploads of these paths, in their order. */
export async function readUploads(redis: Redis, keys: UploadKeys, paths: readonly string[]): Promise<PathUploads[]> {
  const uploads: PathUploads[] = []
  for (const page of pagesOf(paths, PAGE_PATHS)) {
    const [declared, singles, parts] = await Promise.all([
      redis.hmget(keys.signed, ...page),
      redis.hmget(keys.singles, ...page),
      readAllFields(
        redis,
        page.map(path => keys.parts(path)),
      ),
    ])
    for (const [i] of page.entries()) {
      const signed = declared[i]
      uploads.push({
        declared: signed ? (JSON.parse(signed) as DeclaredMap) : undefined,
        parts: parsePartClaims(parts[i] ?? {}),
        single: parseDigested(singles[i] ?? ''),
      })
    }
  }
  return uploads
}

async function readAllFields(redis: Redis, keys: readonly string[]): Promise<Record<string, string>[]> {
  const pipeline = redis.pipeline()
  for (const key of keys) pipeline.hgetall(key)
  const replies = (await pipeline.exec()) ?? []
  if (replies.length !== keys.length) throw new TransientError('Redis did not reply to every command of a pipeline')
  return replies.map(([error, fields]) => {
    if (error) throw error
    return fields as Record<string, string>
  })
}
