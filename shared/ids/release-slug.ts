import { hash } from 'node:crypto'
import { base32 } from './base32.ts'

const SLUG_CHARACTERS = 26

/** Returns the slug of a release, which surface and version determine (`docs/api/releases.md#register-release`). */
export function releaseSlugOf(release: { workspaceId: string; surfaceId: string; name: string }): string {
  const { workspaceId, surfaceId, name } = release
  const digest = hash('sha256', JSON.stringify([workspaceId, surfaceId, name]), 'buffer')
  return `rel_${base32(digest, SLUG_CHARACTERS)}`
}
