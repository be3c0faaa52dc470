import { KIB, MIB } from '../units.ts'

// `npm run generate:docs` writes a row of docs/api/requests.md#bounds for each of these comments.

/** Maximum bytes of a body that is one small JSON object. */
export const SMALL_BODY_BYTES = 256 * KIB
/** Maximum bytes of the metadata of a release, as compact JSON. */
export const RELEASE_METADATA_BYTES = 4 * KIB
/** Maximum bytes of an OTLP export as sent. */
export const EXPORT_BYTES = 20 * MIB
/** Maximum bytes of an OTLP export when decompressed, as a worker checks. */
export const EXPORT_DECOMPRESSED_BYTES = 64 * MIB
/** Maximum bytes of a replay chunk as sent. */
export const CHUNK_BYTES = 10 * MIB
/** Maximum bytes of a replay chunk when decompressed, as a worker checks. */
export const CHUNK_DECOMPRESSED_BYTES = 100 * MIB
/** Maximum bytes of a part of a source map. */
export const SOURCE_MAP_PART_BYTES = 512 * KIB
/** Maximum bytes of a source map. */
export const SOURCE_MAP_MAX_BYTES = 64 * MIB
/** Maximum bytes of a completion. */
export const COMPLETION_BYTES = 16 * MIB

/** Formats a size that is a whole number of KiB or MiB, such as `256 KiB`. */
export function formatBytes(bytes: number): string {
  return bytes % MIB === 0 ? `${bytes / MIB} MiB` : `${bytes / KIB} KiB`
}
