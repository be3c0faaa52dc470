import { hash } from 'node:crypto'
import { base32 } from './base32.ts'

const SLUG_CHARACTERS = 26

/** The slug of a release: the same surface and version give the same one (CONTRACT section 5). */
export function releaseSlugOf(release: { workspaceId: string; surfaceId: string; name: string }): string {
  const { workspaceId, surfaceId, name } = release
  const digest = hash('sha256', JSON.stringify([workspaceId, surfaceId, name]), 'buffer')
  return `rel_${base32(digest, SLUG_CHARACTERS)}`
}
