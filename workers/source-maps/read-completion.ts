import { setImmediate as nextTurn } from 'node:timers/promises'
import { z } from 'zod'
import {
  type CompleteSourceMaps,
  completeSourceMapsSchema,
  type ManifestEntry,
  manifestEntrySchema,
} from '../../schemas/http/source-maps/schemas.ts'
import { pagesOf } from '../../shared/concurrency/pages.ts'
import { checkValue } from '../../shared/http/check-value.ts'
import { JsonScanner } from '../decode/json-scanner.ts'

/** Files of one manifest. */
export const MAX_FILES = 100_000
/**
 * JSON values of one body. Each file has five; the rest is for fields of newer clients. `JSON.parse` takes 0.1 s for this
 * many.
 */
const MAX_VALUES = 1_000_000
const MAX_FAULTS = 20
/** Bytes that are scanned per turn of the event loop. */
const SCAN_BYTES = 128 * 1024
const PAGE_FILES = 1_000

/** A parsed completion, or the message of its refusal. */
type ReadCompletion =
  | { readonly ok: true; readonly completion: CompleteSourceMaps }
  | { readonly ok: false; readonly message: string }

const outerSchema = completeSourceMapsSchema.extend({ files: z.array(z.unknown()).max(MAX_FILES) })

/**
 * Reads the body of a completion, of up to 16 MiB, in turns. Parsing takes 0.1 s for 16 MiB of what clients send, but more
 * than a second and 500 MB for 16 MiB of `[],[],…`. So values are counted before they are built.
 */
export async function readCompletion(body: Buffer): Promise<ReadCompletion> {
  const scanner = new JsonScanner()
  for (let at = 0; at < body.length; at += SCAN_BYTES) {
    if (at > 0) await nextTurn()
    if (!scanner.add(body.subarray(at, at + SCAN_BYTES))) return refused('the body is not JSON')
    if (scanner.values > MAX_VALUES) return refused(`the body has more than ${MAX_VALUES} values`)
  }
  if (!scanner.end()) return refused('the body is not JSON')
  const outer = checkValue(outerSchema, JSON.parse(body.toString()))
  if (!outer.ok) return refused(outer.issues.map(issue => describe(issue)).join('; '))
  const { sourceFileCount } = outer.value
  const files: ManifestEntry[] = []
  const seen = new Set<string>()
  const faults: string[] = []
  for (const page of pagesOf(outer.value.files, PAGE_FILES)) {
    await nextTurn()
    for (const file of page) {
      const entry = checkValue(manifestEntrySchema, file)
      const position = `files[${files.length + faults.length}]`
      if (!entry.ok) faults.push(entry.issues.map(issue => describe(issue, position)).join('; '))
      else if (seen.has(entry.value.path)) faults.push(`${position}.path ${quote(entry.value.path)} is named twice`)
      else {
        seen.add(entry.value.path)
        files.push(entry.value)
      }
      if (faults.length === MAX_FAULTS) return refused(faults.join('; '))
    }
  }
  if (faults.length > 0) return refused(faults.join('; '))
  return { ok: true, completion: { files, sourceFileCount } }
}

const refused = (message: string) => ({ ok: false, message }) as const

function describe(issue: z.core.$ZodIssue, position = ''): string {
  const field = issue.path.reduce<string>((text, key) => {
    if (typeof key === 'number') return `${text}[${key}]`
    return text === '' ? String(key) : `${text}.${String(key)}`
  }, position)
  return `${field || 'the body'} ${issue.message}`
}

const quote = (path: string) => JSON.stringify(path.slice(0, 200))
