import { open } from 'node:fs/promises'
import { KIB, MIB } from '../../../../schemas/units.ts'
import { type BundleComments, readBundleComments } from './bundle-comments.ts'
import { findStatementPlace, type StatementPlace } from './debug-id-statement.ts'
import type { BuildFile } from './find-build-files.ts'
import { readRange } from './replace-file.ts'

/** A script of the build, and what the comments at its end name. */
export interface Bundle extends Omit<BundleComments, 'insertAt'> {
  readonly file: BuildFile
  /** The bundle contains its source map as a `data:` URL. */
  readonly hasInlineMap: boolean
  /** Bytecode of Hermes. It has no comments, and gets none. */
  readonly isBytecode: boolean
  /** Offset in the file at which the debug id comment is inserted. */
  readonly insertAt: number
  /** The bytes right before `insertAt`. */
  readonly before: Buffer
  /** Where its debug id becomes known when it runs. Undefined if the place is not found. */
  readonly statement: StatementPlace | undefined
}

/** The first bytes of bytecode of Hermes. */
const BYTECODE_START = Buffer.from('c61fbc03c103191f', 'hex')
const BEFORE_BYTES = 256
/** Directives are found in this part. A comment of a license may come before them. */
const HEAD_BYTES = 32 * KIB
const TAIL_BYTES = 64 * KIB
/**
 * A bundle up to this size is read completely if its last bytes name no map, because an inline map is one long line.
 */
const MAX_BYTES = 256 * MIB

/** Reads the comments of a bundle, usually from its last bytes only. The bytes of an inline map are not kept. */
export async function readBundle(file: BuildFile): Promise<Bundle> {
  const { start, bytes, comments, isBytecode, statement } = await readEnd(file)
  const { sourceMappingUrl, ...rest } = comments
  const hasInlineMap = isDataUrl(sourceMappingUrl)
  return {
    ...rest,
    ...(sourceMappingUrl !== undefined && !hasInlineMap && { sourceMappingUrl }),
    file,
    hasInlineMap,
    isBytecode,
    statement,
    insertAt: start + comments.insertAt,
    before: Buffer.from(bytes.subarray(Math.max(0, comments.insertAt - BEFORE_BYTES), comments.insertAt)),
  }
}

/** Returns the bytes of a bundle's inline map, or undefined if they cannot be decoded. */
export async function readInlineMap(file: BuildFile): Promise<Buffer | undefined> {
  const { sourceMappingUrl } = (await readEnd(file)).comments
  return isDataUrl(sourceMappingUrl) ? decodeDataUrl(sourceMappingUrl) : undefined
}

interface End {
  readonly start: number
  readonly bytes: Buffer
  readonly comments: BundleComments
  readonly isBytecode: boolean
  readonly statement: StatementPlace | undefined
}

async function readEnd(file: BuildFile): Promise<End> {
  const handle = await open(file.absolutePath)
  try {
    const { size } = await handle.stat()
    const head = await readRange(handle, 0, Math.min(size, HEAD_BYTES))
    if (head.subarray(0, BYTECODE_START.length).equals(BYTECODE_START)) {
      const bytes = Buffer.alloc(0)
      return { start: size, bytes, comments: { insertAt: 0 }, isBytecode: true, statement: undefined }
    }
    const statement = findStatementPlace(head, head.length === size)
    const read = async (start: number) => {
      const bytes = await readRange(handle, start, size)
      return { start, bytes, comments: readBundleComments(bytes), isBytecode: false, statement }
    }
    const end = await read(Math.max(0, size - TAIL_BYTES))
    const mayBeLonger = end.start > 0 && end.comments.sourceMappingUrl === undefined
    return mayBeLonger && size <= MAX_BYTES ? await read(0) : end
  } finally {
    await handle.close()
  }
}

function isDataUrl(url: string | undefined): url is string {
  return url !== undefined && /^data:/i.test(url)
}

function decodeDataUrl(url: string): Buffer | undefined {
  const comma = url.indexOf(',')
  if (comma === -1) return undefined
  const body = url.slice(comma + 1)
  if (/;\s*base64$/i.test(url.slice(0, comma))) return Buffer.from(body, 'base64')
  try {
    return Buffer.from(decodeURIComponent(body))
  } catch {
    return undefined // a percent sign that starts no escape sequence
  }
}
