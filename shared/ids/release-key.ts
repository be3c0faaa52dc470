/** Identifies a release, or the uploads that wait for it: slugs are unique within a workspace. */
export interface ReleaseKey {
  readonly workspaceId: string
  readonly surfaceId: string
  readonly slug: string
}
