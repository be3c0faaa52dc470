import type { ReleaseBuildResult } from '../schemas/http/releases/schemas.ts'

/** Exit codes of the commands, by name. */
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
  differs: 11,
  warned: 12,
  faulty: 13,
  notJudged: 14,
} as const
/** One of the exit codes of `EXIT`. */
export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

/** Exit code of `sourcemaps upload` for each result of a build. */
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

/** Any command can end with these codes. */
const ALWAYS: Readonly<Record<number, string>> = {
  [EXIT.done]: 'done',
  [EXIT.failed]: 'the directory is unavailable',
  [EXIT.usage]: 'the arguments or the environment are invalid',
}

/**
 * Returns the "Exit codes" section of a help text. Codes 0, 1 and 2 are always listed; `meanings` adds the other codes
 * of the command, and may replace the text of these three.
 */
export function exitCodesHelp(meanings: Readonly<Partial<Record<ExitCode, string>>> = {}): string {
  // The keys are integers, which an object lists in ascending order.
  const lines = Object.entries({ ...ALWAYS, ...meanings }).map(([code, meaning]) => `  ${code.padStart(2)}  ${meaning}`)
  return ['Exit codes:', ...lines].join('\n')
}
