import type { ReleaseBuildResult } from '../schemas/http/releases/schemas.ts'

/** How a command ends; its help says so. */
export const EXIT = {
  done: 0,
  failed: 1,
  usage: 2,
  notFound: 3,
  keyWrongPrefix: 4,
  keyUnreadable: 5,
  keyRejected: 6,
  keyScopeMismatch: 7,
  noSourceMaps: 8,
  mapsUnmapped: 9,
  conflict: 10,
} as const
export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

/** How the upload of a build ends. */
export const EXIT_OF_BUILD = {
  ok: EXIT.done,
  pipeline_failed: EXIT.failed,
  api_key_wrong_prefix: EXIT.keyWrongPrefix,
  api_key_unreadable: EXIT.keyUnreadable,
  api_key_rejected: EXIT.keyRejected,
  api_key_scope_mismatch: EXIT.keyScopeMismatch,
  no_source_maps: EXIT.noSourceMaps,
  client_maps_unmapped: EXIT.mapsUnmapped,
} as const satisfies Record<ReleaseBuildResult, ExitCode>
