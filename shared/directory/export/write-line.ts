import { importChanges } from '../changes/change-log.ts'
import { writeErasure } from '../erasures.ts'
import { importFindingWork } from '../findings/write-finding-work.ts'
import { releaseKeys } from '../release-store.ts'
import type { Command } from '../transaction.ts'
import {
  writeMember,
  writePointer,
  writeReceiptSecret,
  writeRelease,
  writeStoredMaps,
  writeSurface,
  writeSurfaceKey,
  writeUser,
  writeWorkspace,
  writeWorkspaceKey,
} from '../writes.ts'
import type { RecordLine } from './lines.ts'

/**
 * Returns the commands that store the record of a line in a directory that has no other records than those of the lines
 * before it. `now` is in Unix milliseconds.
 */
export function writeLine(line: RecordLine, now: number): readonly Command[] {
  switch (line.kind) {
    case 'receipt-secret':
      return writeReceiptSecret(line.record).commands
    case 'user':
      return writeUser(line.record).commands
    case 'workspace':
      return writeWorkspace(line.record, undefined).commands
    case 'member':
      return writeMember(line.record).commands
    case 'surface':
      return writeSurface(line.record).commands
    case 'surface-key':
      return writeSurfaceKey(line.record).commands
    case 'workspace-key':
      return writeWorkspaceKey(line.record, now).commands
    case 'release': {
      const { workspaceId, slug, createdAt } = line.record
      // The line of its manifest, if it has one, removes it from this index.
      const unfinished: Command = ['ZADD', releaseKeys.unfinished(workspaceId), Date.parse(createdAt), slug]
      return [...writeRelease(line.record).commands, unfinished]
    }
    case 'manifest': {
      const { workspaceId, releaseSlug, ...pointer } = line.record
      return writePointer({ workspaceId, releaseSlug }, pointer).commands
    }
    case 'stored-maps':
      return writeStoredMaps(line.record.workspaceId, line.record.sha256s).commands
    case 'erasure':
      return writeErasure(line.record)
    case 'finding-work': {
      const { activity, ...work } = line.record
      return importFindingWork(work, activity, 0)
    }
    case 'changes':
      return importChanges(line.record.workspaceId, line.record.changes)
  }
}
