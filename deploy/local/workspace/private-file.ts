import { chmod, rename, writeFile } from 'node:fs/promises'

/** Writes JSON that only this user may read. */
export function writePrivateJson(path: string, value: unknown): Promise<void> {
  return writePrivateFile(path, `${JSON.stringify(value, undefined, 2)}\n`)
}

/** Writes a file that only this user may read. It appears by rename, so a reader sees all of it or nothing. */
export async function writePrivateFile(path: string, text: string): Promise<void> {
  const temporary = `${path}.${process.pid}`
  await writeFile(temporary, text, { mode: 0o600 })
  await chmod(temporary, 0o600)
  await rename(temporary, path)
}
