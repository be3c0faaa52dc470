/** A file of an archive. */
export interface ArchivedFile {
  /** Path of at most 100 bytes. */
  readonly name: string
  readonly content: Buffer
}

const BLOCK_BYTES = 512
const NAME_BYTES = 100

/** Returns an archive in the format `ustar` of POSIX. Only the owner may read its files. Throws a RangeError for a long name. */
export function tarOf(files: readonly ArchivedFile[], modifiedAtMs: number): Buffer {
  const blocks = files.flatMap(({ name, content }) => {
    const rest = content.length % BLOCK_BYTES
    const padding = Buffer.alloc(rest === 0 ? 0 : BLOCK_BYTES - rest)
    return [headerOf(name, content.length, modifiedAtMs), content, padding]
  })
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK_BYTES)])
}

function headerOf(name: string, bytes: number, modifiedAtMs: number): Buffer {
  if (Buffer.byteLength(name) > NAME_BYTES) throw new RangeError(`the name ${name} is too long for an archive`)
  const header = Buffer.alloc(BLOCK_BYTES)
  const octal = (value: number, at: number, length: number) =>
    header.write(`${value.toString(8).padStart(length - 1, '0')}\0`, at)
  header.write(name, 0)
  octal(0o600, 100, 8)
  octal(0, 108, 8)
  octal(0, 116, 8)
  octal(bytes, 124, 12)
  octal(Math.floor(modifiedAtMs / 1_000), 136, 12)
  // The checksum counts its own field as spaces.
  header.fill(' ', 148, 156)
  header.write('0', 156)
  header.write('ustar\0', 257)
  header.write('00', 263)
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return header
}
