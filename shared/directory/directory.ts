import { randomBytes } from 'node:crypto'
import type { Redis } from 'ioredis'
import { createSurfaceRecords, type SurfaceRecords } from './surfaces.ts'
import { createWorkspaceKeyRecords, type WorkspaceKeyRecords } from './workspace-keys.ts'
import { createWorkspaceRecords, type WorkspaceRecords } from './workspaces.ts'

/** Workspaces, users, members, surfaces and keys. Whoever only reads some of it names those functions with `Pick`. */
export interface Directory extends WorkspaceRecords, SurfaceRecords, WorkspaceKeyRecords {}

/**
 * Keeps them as JSON records in Redis, one key each (`record.ts` names them). A record and its indexes are
 * written in one step, as is a change of several records; what depends on what was read is read again when it has
 * changed. A change of a credential is published in the same step. Throws a DirectoryRecordError for a record that is not
 * what its schema says, and what Redis throws.
 */
export function createDirectory(redis: Redis): Directory {
  return {
    ...createWorkspaceRecords(redis),
    ...createSurfaceRecords(redis),
    ...createWorkspaceKeyRecords(redis),
  }
}

/** An id like `srf_5f2c…`: 80 random bits in hex behind a prefix that says what it names. */
export function newId(prefix: 'ws' | 'srf' | 'key'): string {
  return `${prefix}_${randomBytes(10).toString('hex')}`
}
