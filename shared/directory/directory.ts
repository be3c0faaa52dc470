import { randomBytes } from 'node:crypto'
import type { Redis } from 'ioredis'
import { type AlertsStore, createAlertsStore } from './alerts-store.ts'
import { type ChangeLog, createChangeLog } from './changes/change-log.ts'
import { type CreationStore, createCreationStore } from './creations.ts'
import { createDroppingStore, type DroppingStore } from './dropping-store.ts'
import { createErasureStore, type ErasureStore } from './erasures.ts'
import { createFindingMergeStore, type FindingMergeStore } from './findings/finding-merge-store.ts'
import { createFindingRulesStore, type FindingRulesStore } from './findings/finding-rules-store.ts'
import { createFindingWorkStore, type FindingWorkStore } from './findings/finding-work-store.ts'
import { createMemberChanges, type MemberChanges } from './members/member-changes.ts'
import { createScrubbingStore, type ScrubbingStore } from './scrubbing-store.ts'
import { createSurfaceKeyRecords, type SurfaceKeyRecords } from './surface-keys.ts'
import { createSurfaceRecords, type SurfaceRecords } from './surfaces.ts'
import { createWorkspaceKeyRecords, type WorkspaceKeyRecords } from './workspace-keys.ts'
import { createWorkspaceRecords, type WorkspaceRecords } from './workspaces.ts'

/** Stores workspaces, users, members, surfaces and keys. A module that needs a part of it names that part with `Pick`. */
export interface Directory
  extends WorkspaceRecords,
    SurfaceRecords,
    SurfaceKeyRecords,
    WorkspaceKeyRecords,
    CreationStore,
    ErasureStore,
    FindingWorkStore,
    FindingMergeStore,
    FindingRulesStore,
    ScrubbingStore,
    DroppingStore,
    AlertsStore,
    ChangeLog,
    MemberChanges {}

/**
 * Creates the directory on a Redis, where each record is a JSON string under its own key (`record.ts` has the names). A
 * record and its indexes are written in one step, and so is a change of several records. A change that depends on other
 * records reads them again if they have changed. A change of a credential is published in the same step. The functions
 * throw a DirectoryRecordError for a record that does not match its schema, and rethrow errors of Redis.
 */
export function createDirectory(redis: Redis): Directory {
  const workspaces = createWorkspaceRecords(redis)
  const workspaceKeys = createWorkspaceKeyRecords(redis)
  return {
    ...workspaces,
    ...createSurfaceRecords(redis),
    ...createSurfaceKeyRecords(redis, { member: workspaces.member, workspaceKey: workspaceKeys.workspaceKey }),
    ...workspaceKeys,
    ...createCreationStore(redis),
    ...createErasureStore(redis),
    ...createFindingWorkStore(redis),
    ...createFindingMergeStore(redis),
    ...createFindingRulesStore(redis),
    ...createScrubbingStore(redis),
    ...createDroppingStore(redis),
    ...createAlertsStore(redis),
    ...createChangeLog(redis),
    ...createMemberChanges(redis),
  }
}

/** Creates an id like `srf_5f2c…`: a prefix for the kind of record, then 80 random bits in hex. */
export function newId(prefix: 'ws' | 'srf' | 'key' | 'act' | 'rcv'): string {
  return `${prefix}_${randomBytes(10).toString('hex')}`
}
