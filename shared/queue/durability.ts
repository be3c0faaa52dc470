import type { DurabilitySettings } from '../runtime/config.ts'

/** The settings of a Redis that INFO does not have, or undefined if the service forbids to read them. */
export type AofSettings = ReadonlyMap<string, string> | undefined

/** A replica that is further behind counts as absent, as with Redis' own `min-replicas-max-lag`. */
const MAX_LAG_S = 10

/** The first version with what Penstock uses: the flags of a script (`#!lua flags=allow-oom`). */
const LEAST_MAJOR = 7

/** Returns why this version of Redis cannot run the scripts. Valkey states the version of Redis that it is compatible with. */
function versionFault(info: string): string | undefined {
  const version = /^redis_version:(\d[\d.]*)/m.exec(info)?.[1]
  if (version === undefined || Number.parseInt(version, 10) >= LEAST_MAJOR) return undefined
  return `version ${version} is too old: Redis ${LEAST_MAJOR}.0 or later is needed`
}

/**
 * Returns why a write that this Redis confirms could be lost, or undefined if it keeps the promise
 * (docs/operate/durability.md#durability). `info` is the reply of INFO.
 */
export function durabilityFault(info: string, aof: AofSettings, promise: DurabilitySettings): string | undefined {
  // First, because an earlier version cannot answer all that is asked below.
  const tooOld = versionFault(info)
  if (tooOld !== undefined) return tooOld
  const field = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1]
  if (field('loading') === '1') return 'it is loading its data'
  if (isReplica(info)) return 'it is a replica: its address must lead to the primary'
  if (promise.REDIS_DURABILITY === 'unchecked') return undefined
  if (field('aof_enabled') !== '1') return 'appendonly is no: set appendonly yes, or REDIS_DURABILITY=unchecked'
  if (aof === undefined) {
    return 'it forbids CONFIG GET, so that appendfsync cannot be checked: allow it, or set REDIS_DURABILITY=unchecked'
  }
  const appendfsync = aof.get('appendfsync')
  if (appendfsync !== 'always') return `appendfsync is ${appendfsync}: set appendfsync always`
  if (aof.get('no-appendfsync-on-rewrite') === 'yes') return 'no-appendfsync-on-rewrite is yes: set it to no'
  if (field('aof_last_write_status') === 'err') return 'its last write to disk failed (aof_last_write_status)'
  const policy = field('maxmemory_policy')
  if (policy !== 'noeviction')
    return `maxmemory-policy is ${policy}: set noeviction, or it removes data when it is full`
  if (Number(field('maxmemory')) === 0) return 'maxmemory is 0, so that nothing is refused before it is full: set it'
  if (promise.REDIS_DURABILITY !== 'replicated') return undefined
  const inStep = replicasInStep(info)
  if (inStep >= promise.REDIS_MIN_REPLICAS) return undefined
  return `${inStep} replicas are in step and REDIS_MIN_REPLICAS is ${promise.REDIS_MIN_REPLICAS}`
}

/** Reports whether the reply of INFO is that of a replica. */
export function isReplica(info: string): boolean {
  return /^role:slave/m.test(info)
}

function replicasInStep(info: string): number {
  const lags = [...info.matchAll(/^slave\d+:.*\bstate=online\b.*\blag=(\d+)/gm)].map(([, lag]) => Number(lag))
  return lags.filter(lag => lag <= MAX_LAG_S).length
}
