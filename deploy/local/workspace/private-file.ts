import { chmod, rename, writeFile } from 'node:fs/promises'

/** Writes JSON that only this user may read. The file appears by rename, so a reader sees all of it or nothing. */
export async function writePrivateJson(path: string, value: unknown): Promise<void> {
  const temporary = `${path}.${process.pid}`
  await writeFile(temporary, `${JSON.stringify(value, undefined, 2)}\n`, { mode: 0o600 })
  await chmod(temporary, 0o600)
  await rename(temporary, path)
}
