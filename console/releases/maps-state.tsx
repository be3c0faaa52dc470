/** Whether the source maps of a release are complete. */
export function MapsState({ completedAt }: { readonly completedAt: string | null }) {
  return completedAt === null ? <span class="tag doubt">not complete</span> : <span class="tag good">complete</span>
}
