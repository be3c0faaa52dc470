import type { Surface, SurfaceKey, Workspace, WorkspaceKey } from '../../../schemas/records/directory.ts'
import { newId } from '../../../shared/directory/directory.ts'
import { digestOf, generateKey } from '../../../shared/ids/credentials.ts'

const AT = '2026-08-01T12:00:00.000Z'

/** Makes a workspace record that is valid unless it is changed, with a new id. */
export function aWorkspace(change: Partial<Workspace> = {}): Workspace {
  const id = newId('ws')
  return { version: 1, id, slug: id.replace('_', '-'), name: 'A workspace', createdAt: AT, ...change }
}

/** Makes a surface record that is valid unless it is changed, with a new id. */
export function aSurface(change: Partial<Surface> = {}): Surface {
  return { version: 1, id: newId('srf'), workspaceId: 'ws_1', name: 'A surface', createdAt: AT, ...change }
}

/** Makes a surface key that is valid unless it is changed, with a new id. */
export function aSurfaceKey(change: Partial<SurfaceKey> = {}): SurfaceKey {
  const text = generateKey(change.kind ?? 'public')
  return {
    version: 1,
    id: newId('key'),
    kind: 'public',
    digest: digestOf(text),
    prefix: text.slice(0, 6),
    workspaceId: 'ws_1',
    surfaceId: 'srf_1',
    scopes: [],
    createdAt: AT,
    expiresAt: null,
    revokedAt: null,
    ...change,
  }
}

/** Makes a workspace key that is valid unless it is changed, with a new id. */
export function aWorkspaceKey(change: Partial<WorkspaceKey> = {}): WorkspaceKey {
  const text = generateKey('workspace')
  return {
    version: 1,
    id: newId('key'),
    workspaceId: 'ws_1',
    name: 'A key',
    scopes: ['org:surfaces:read'],
    digest: digestOf(text),
    prefix: text.slice(0, 6),
    createdBy: 'user_1',
    createdAt: AT,
    expiresAt: null,
    revokedAt: null,
    ...change,
  }
}
