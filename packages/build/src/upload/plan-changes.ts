import { debugIdLine } from './bundle-comments.ts'
import { debugIdStatement, STATEMENT_LENGTH } from './debug-id-statement.ts'
import type { BuildFile } from './find-build-files.ts'
import type { PairedMap } from './pair-maps.ts'
import type { Bundle } from './read-bundle.ts'
import type { insertInto } from './replace-file.ts'
import { debugIdEdits, type Edit, type ScannedMap, statementMark } from './scan-source-map.ts'
import { shiftColumns } from './shift-columns.ts'

/** The changes of a map and of its bundles. */
interface Changes {
  /** Sorted by their position. */
  readonly edits: readonly Edit[]
  readonly bundles: readonly { readonly file: BuildFile; readonly insertions: Parameters<typeof insertInto>[1] }[]
}

/**
 * Returns the edits of a map that move the columns after the statement of its bundle. Returns undefined if the bundle gets no
 * statement, and no edits if they were made before. A map of several bundles has no statement, because it may be at different
 * places. Neither has an inline map, which stays as it is.
 */
export function planShift(map: PairedMap, bytes: Buffer, scanned: ScannedMap & { ok: true }): Edit[] | undefined {
  const place = map.bundles[0]?.statement
  if (!map.file || map.bundles.length !== 1 || !place) return undefined
  if (scanned.countsStatement) return []
  const shift = shiftColumns(bytes, scanned, { ...place, length: STATEMENT_LENGTH })
  return shift && [...shift, statementMark(scanned)]
}

/**
 * Returns the changes that give a map and its bundles this id: a comment at the end of each bundle, a field of the map, and the
 * statement at the beginning of the bundle, if the columns of the map are moved.
 */
export function planChanges(
  { bundles }: PairedMap,
  scanned: ScannedMap & { ok: true },
  shift: readonly Edit[] | undefined,
  debugId: string,
): Changes {
  const ids = scanned.debugId === debugId ? [] : debugIdEdits(scanned, debugId)
  return {
    edits: [...ids, ...(shift ?? [])].sort((a, b) => a.start - b.start),
    bundles: bundles.flatMap(bundle => {
      const { file, statement, insertAt, before } = bundle
      const insertions = [
        ...(shift && statement && !statement.isThere ? [{ at: statement.at, text: debugIdStatement(debugId) }] : []),
        ...(lacksDebugId(bundle) ? [{ at: insertAt, text: debugIdLine(debugId, before) }] : []),
      ]
      return insertions.length > 0 ? [{ file, insertions }] : []
    }),
  }
}

/** Returns whether a bundle can get a debug id and has none. */
export function lacksDebugId({ debugId, isBytecode }: Bundle): boolean {
  return debugId === undefined && !isBytecode
}
