import { createHash, randomBytes } from 'node:crypto'
import { mkdir, rm, stat, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DAY_MS } from '../../../schemas/units.ts'

/** How long a link can be used. */
const LIFETIME_MS = DAY_MS

/**
 * Creates a link that signs one browser in, and returns its code. The directory has a file for each link, which is named by the
 * digest of its code: who reads it learns no code. Links outlive a restart of the process that opens them.
 */
export async function createLink(directory: string): Promise<string> {
  const code = randomBytes(32).toString('base64url')
  await mkdir(linksOf(directory), { recursive: true, mode: 0o700 })
  await writeFile(fileOf(directory, code), '', { mode: 0o600 })
  return code
}

/** Removes all links, so that only those of this start can be used. */
export async function removeLinks(directory: string): Promise<void> {
  await rm(linksOf(directory), { recursive: true, force: true })
}

/** Uses a link up. Returns false if there is none, because a file is removed by one caller only. */
export async function openLink(directory: string, code: string, now: () => number): Promise<boolean> {
  const file = fileOf(directory, code)
  try {
    const { mtimeMs } = await stat(file)
    await unlink(file)
    return now() - mtimeMs < LIFETIME_MS
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw error
  }
}

function linksOf(directory: string): string {
  return join(directory, 'sign-in-links')
}

function fileOf(directory: string, code: string): string {
  return join(linksOf(directory), createHash('sha256').update(code).digest('hex'))
}
