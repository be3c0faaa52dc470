/** 1,024 bytes. */
export const KIB = 1024
/** 1,048,576 bytes. */
export const MIB = 1024 * KIB

/** Formats a size that is a whole number of KiB or MiB, such as `256 KiB`. */
export function formatBytes(bytes: number): string {
  return bytes % MIB === 0 ? `${bytes / MIB} MiB` : `${bytes / KIB} KiB`
}
