import {
  createSurface,
  createSurfaceKey,
  listSurfaceKeys,
  type Surface,
  type SurfaceKey,
} from '../api/generated/client.ts'

/** Returns the address at which clients reach the edge: the one that the document names, else that of the console. */
export function endpointOfPage(): string {
  return document.querySelector<HTMLMetaElement>('meta[name=penstock-public-url]')?.content || location.origin
}

type Options = { readonly signal: AbortSignal }

/** Creates a surface with a public key, so that something can be sent at once. */
export async function createSurfaceWithKey(name: string, options: Options): Promise<Surface> {
  const { surface } = await createSurface({ createSurfaceRequest: { name } }, options)
  // A surface without a key is shown with a button that makes one.
  await createPublicKey(surface.id, options).catch(() => undefined)
  return surface
}

/** Creates a public key of a surface. */
export async function createPublicKey(surfaceId: string, options: Options): Promise<void> {
  await createSurfaceKey({ surfaceId, createSurfaceKeyRequest: { kind: 'public' } }, options)
}

const KEYS_READ = 100

/** Returns the text of the newest public key of a surface that works, or null if it has none. */
export async function publicKeyOf(surfaceId: string, options: Options): Promise<string | null> {
  const { keys } = await listSurfaceKeys({ surfaceId, limit: KEYS_READ }, options)
  return keys.find(works)?.publicKey ?? null
}

function works({ kind, publicKey, expiresAt, revokedAt }: SurfaceKey): boolean {
  return (
    kind === 'public' && Boolean(publicKey) && revokedAt === null && !(expiresAt && Date.parse(expiresAt) <= Date.now())
  )
}
